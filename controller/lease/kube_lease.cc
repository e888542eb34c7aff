#include "controller/lease/kube_lease.h"

#include "base/status.h"
#include "controller/cluster/kube/times.h"

namespace paceline::lease {

using kube::Json;

namespace {

constexpr char kAddress[] = "paceline.dev/coordinator-address";  // annotation
constexpr std::size_t kMaxAddressBytes = 300;

}  // namespace

Json lease_object(const LeaseRecord& record, const std::string& name, const std::string& version) {
  Json metadata{{"name", name}};
  if (!version.empty()) metadata["resourceVersion"] = version;
  if (!record.address.empty()) {
    metadata["annotations"] = {{kAddress, record.address}};
  } else if (!version.empty()) {
    metadata["annotations"] = {{kAddress, nullptr}};  // a merge patch: another holder's goes
  }
  return Json{{"apiVersion", std::string(kube::kLeases.api_version)},
              {"kind", std::string(kube::kLeases.kind)},
              {"metadata", std::move(metadata)},
              {"spec",
               {{"holderIdentity", record.holder},
                {"leaseDurationSeconds", record.duration_seconds},
                {"acquireTime", kube::format_micro_time(record.acquired)},
                {"renewTime", kube::format_micro_time(record.renewed)},
                {"leaseTransitions", record.transitions}}}};
}

Seen seen_of(const Json& object) {
  const auto time = [&](const char* name) {
    return kube::parse_time(kube::text_at(object, {"spec", name})).value_or(WallTime{});
  };
  return {.record = {.holder = kube::text_at(object, {"spec", "holderIdentity"}),
                     .duration_seconds = kube::integer_at(object, {"spec", "leaseDurationSeconds"}),
                     .acquired = time("acquireTime"),
                     .renewed = time("renewTime"),
                     .transitions = kube::integer_at(object, {"spec", "leaseTransitions"}),
                     .address = kube::sanitize_line(
                         kube::text_at(object, {"metadata", "annotations", kAddress}), kMaxAddressBytes)},
          .version = kube::text_at(object, {"metadata", "resourceVersion"})};
}

absl::StatusOr<std::optional<Seen>> KubeLease::read() {
  const absl::StatusOr<Json> object = api_.get(kube::kLeases, ns_, name_);
  if (absl::IsNotFound(object.status())) return std::optional<Seen>();
  PL_RETURN_IF_ERROR(object.status());
  return std::optional<Seen>(seen_of(*object));
}

absl::StatusOr<Seen> KubeLease::write(const ElectionCore::Write& write) {
  const Json object = lease_object(write.record, name_, write.version);
  const absl::StatusOr<Json> stored = write.version.empty()
                                          ? api_.create(kube::kLeases, ns_, object)
                                          : api_.merge_patch(kube::kLeases, ns_, name_, "", object);
  PL_RETURN_IF_ERROR(stored.status());
  return seen_of(*stored);
}

}  // namespace paceline::lease
