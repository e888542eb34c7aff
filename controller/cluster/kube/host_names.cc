#include "controller/cluster/kube/host_names.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/fnv1a.h"
#include "base/text.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

namespace {

constexpr char kServiceLabel[] = "kubernetes.io/service-name";
// Node proxies have nothing to do for a headless Service, and don't watch slices with this label.
constexpr char kHeadlessLabel[] = "service.kubernetes.io/headless";

struct Found {
  const SlimPod* pod;
  std::string_view address;
};
struct Place {
  std::int32_t number = 0;
  bool v6 = false;
  auto operator<=>(const Place&) const = default;
};
using Slices = std::map<Place, std::vector<Found>>;

std::string_view name_in(std::string_view key) {
  return key.substr(key.find('/') + 1);
}

bool is_found(const SlimPod& pod) {
  const bool ended = pod.phase == cluster::PodPhase::kSucceeded || pod.phase == cluster::PodPhase::kFailed;
  if (pod.deletion && pod.node_not_ready) return false;
  return !ended || pod.lingers;
}

// Of each role and index the newest, in their order.
std::vector<const SlimPod*> name_owners(const HostNames& names) {
  std::vector<const SlimPod*> pods;
  pods.reserve(names.pods.size());
  for (const auto& pod : names.pods) {
    if (pod->job_uid == names.owner.uid) pods.push_back(pod.get());
  }
  std::ranges::sort(pods, {},
                    [](const SlimPod* pod) { return std::tuple(pod->role, pod->index, -pod->attempt); });
  const auto same_place = [](const SlimPod* a, const SlimPod* b) {
    return a->role == b->role && a->index == b->index;
  };
  pods.erase(std::unique(pods.begin(), pods.end(), same_place), pods.end());
  return pods;
}

void add(const SlimPod& pod, std::string_view address, Slices& slices) {
  if (address.empty()) return;
  const bool v6 = address.find(':') != std::string_view::npos;
  slices[{pod.index / kSliceIndices, v6}].push_back({&pod, address});
}

std::string slice_name(const Owner& job, const Place& place) {
  return str_cat(job.job, "-", place.number, place.v6 ? "-ipv6" : "-ipv4");
}

// The place of a slice of this name; nothing where it is none of this job's.
std::optional<Place> place_in(const Owner& job, std::string_view name) {
  Place place;
  if (!name.starts_with(job.job)) return std::nullopt;
  const char* digits = name.data() + std::min(job.job.size() + 1, name.size());
  (void)std::from_chars(digits, name.data() + name.size(), place.number);
  place.v6 = name.ends_with("-ipv6");
  return place.number >= 0 && slice_name(job, place) == name ? std::optional(place) : std::nullopt;
}

std::string host_of(const Owner& job, const SlimPod& pod) {
  return host_name({.job = job.job, .role = pod.role, .index = pod.index});
}

Json manifest_of(const Owner& job, const Place& place, const std::vector<Found>& found) {
  Json::array_t endpoints;
  for (const auto& [pod, address] : found) {
    const Json target = {
        {"kind", kPods.kind}, {"namespace", job.ns}, {"name", name_in(pod->key)}, {"uid", pod->uid}};
    Json endpoint = {{"addresses", Json::array({address})},
                     {"hostname", host_of(job, *pod)},
                     {"conditions", {{"ready", true}}},
                     {"targetRef", target}};
    if (!pod->node.empty()) endpoint["nodeName"] = pod->node;
    endpoints.push_back(std::move(endpoint));
  }
  Json object = child_manifest(kEndpointSlices, job, slice_name(job, place));
  Json& labels = object["metadata"]["labels"];
  labels[kServiceLabel] = service_name(job.job);
  labels[kHeadlessLabel] = "";
  labels[kManagedByLabel] = kSliceManager;
  object["addressType"] = place.v6 ? "IPv6" : "IPv4";
  object["endpoints"] = std::move(endpoints);
  object["ports"] = Json::array();
  return object;
}

// ---- what a slice says, as a number: the same of what we write and of what the API server shows

class Digest {
 public:
  void add(std::string_view text) {
    hash_.add(text);
    hash_.add(kEnd);
  }
  std::uint64_t value() const { return hash_.value(); }

 private:
  static constexpr unsigned char kEnd = 0xff;  // in no UTF-8
  Fnv1a hash_;
};

Digest begun(std::string_view owner_uid, std::string_view service, bool headless) {
  Digest digest;
  for (const std::string_view text : {owner_uid, service, std::string_view(headless ? "headless" : "")})
    digest.add(text);
  return digest;
}

std::uint64_t digest_of(const Owner& job, const std::vector<Found>& found) {
  Digest digest = begun(job.uid, service_name(job.job), true);
  for (const auto& [pod, address] : found) {
    const std::string host = host_of(job, *pod);
    for (const std::string_view text : {std::string_view(host), std::string_view(pod->node),
                                        name_in(pod->key), std::string_view(pod->uid), address})
      digest.add(text);
  }
  return digest.value();
}

std::uint64_t digest_of(const Json& slice) {
  const Json& labels = at(slice, {"metadata", "labels"});
  Digest digest =
      begun(owner_uid(slice), text_at(labels, {kServiceLabel}), at(labels, {kHeadlessLabel}).is_string());
  for (const Json& each : list_at(slice, {"endpoints"})) {
    for (const std::string* text :
         {&text_at(each, {"hostname"}), &text_at(each, {"nodeName"}), &text_at(each, {"targetRef", "name"}),
          &text_at(each, {"targetRef", "uid"})})
      digest.add(*text);
    for (const Json& address : list_at(each, {"addresses"})) digest.add(text_at(address, {}));
    if (at(each, {"conditions", "ready"}) == false) digest.add("hidden");
  }
  return digest.value();
}

}  // namespace

bool is_our_slice(const Json& object) {
  return text_at(object, {"metadata", "labels", kManagedByLabel}) == kSliceManager;
}

std::optional<SlimSlice> slim_slice(const Json& object) {
  const Json& metadata = at(object, {"metadata"});
  const std::string& name = text_at(metadata, {"name"});
  const std::string& job = text_at(metadata, {"labels", kJobNameLabel});
  if (name.empty() || job.empty() || !is_our_slice(object)) return std::nullopt;
  const std::string& ns = text_at(metadata, {"namespace"});
  return SlimSlice{.key = str_cat(ns, "/", name),
                   .job_key = str_cat(ns, "/", job),
                   .resource_version = text_at(metadata, {"resourceVersion"}),
                   .owner = owner_uid(object),
                   .says = digest_of(object),
                   .endpoints = static_cast<std::uint32_t>(list_at(object, {"endpoints"}).size())};
}

SliceWrites slice_writes(const HostNames& names, std::optional<TimePoint>& since, TimePoint now) {
  Slices wanted;
  std::size_t found = 0;
  bool all_have_addresses = true;
  for (const SlimPod* pod : name_owners(names)) {
    if (!is_found(*pod)) continue;
    add(*pod, pod->pod_ip, wanted);
    add(*pod, pod->other_ip, wanted);
    ++found;
    all_have_addresses = all_have_addresses && !pod->pod_ip.empty();
  }
  for (const auto& slice : names.present) {
    if (const auto place = place_in(names.owner, name_in(slice->key)); place && slice->endpoints > 0)
      wanted.try_emplace(*place);
  }
  SliceWrites writes;
  for (const auto& [place, endpoints] : wanted) {
    const std::string name = slice_name(names.owner, place);
    const auto there =
        std::ranges::find_if(names.present, [&](const auto& slice) { return name_in(slice->key) == name; });
    if (there != names.present.end() && (*there)->says == digest_of(names.owner, endpoints)) continue;
    SliceWrite& write = writes.now.emplace_back(
        SliceWrite{.name = name, .object = manifest_of(names.owner, place, endpoints)});
    if (there == names.present.end()) continue;
    write.resource_version = (*there)->resource_version;
    write.from_earlier_job = !(*there)->owner.empty() && (*there)->owner != names.owner.uid;
  }
  if (writes.now.empty()) {
    since.reset();
    return writes;
  }
  if (!since) since = now;
  // Where there are more than that, those that are to go do so one by one.
  const bool complete = all_have_addresses && found == names.pods_wanted;
  if (complete || now - *since >= kGathering) return writes;
  return {.now = {}, .wait = kGathering - (now - *since)};
}

}  // namespace paceline::kube
