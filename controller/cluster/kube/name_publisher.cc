#include "controller/cluster/kube/name_publisher.h"

#include <utility>

#include "base/retry_after.h"
#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

namespace {

std::string what_is(const Owner& owner, const SliceWrite& slice) {
  return str_cat("endpointslice ", owner.ns, "/", slice.name);
}

}  // namespace

NamePublisher::NamePublisher(ApiClient& api, const Clock& clock, Logger log, Informer::OnChange on_change,
                             const NamePublisherOptions& options)
    : api_(api),
      clock_(clock),
      store_(slim_slice),
      informer_(api, {kEndpointSlices, options.ns, kOurSlices}, store_, clock, std::move(log), options.seed,
                std::move(on_change), options.limits, options.pause) {}

absl::StatusOr<std::optional<Duration>> NamePublisher::publish(
    const Owner& owner, std::size_t pods_wanted, std::vector<std::shared_ptr<const SlimPod>> pods) {
  const bool listed = informer_.synced();
  const absl::Status refused = informer_.first_list();
  if (!listed && refused.ok()) return kListLook;
  const std::string key = str_cat(owner.ns, "/", owner.job);
  std::optional<TimePoint> since;
  {
    auto gathering = gathering_.lock();
    if (const auto found = gathering->find(key); found != gathering->end()) since = found->second;
  }
  SliceWrites writes =
      slice_writes({owner, pods_wanted, std::move(pods), store_.of_job(key)}, since, clock_.now());
  if (!listed && (!writes.now.empty() || writes.wait)) return refused;
  absl::Status status;
  for (SliceWrite& slice : writes.now) status.Update(write(owner, slice));
  if (!writes.now.empty() && status.ok()) since.reset();
  auto gathering = gathering_.lock();
  if (!since) {
    gathering->erase(key);
  } else {
    if (gathering->size() >= kMostGathering) gathering->clear();
    (*gathering)[key] = *since;
  }
  if (!status.ok()) return status;
  return writes.wait;
}

absl::Status NamePublisher::change(const Owner& owner, SliceWrite& slice) {
  slice.object["metadata"]["resourceVersion"] = slice.resource_version;
  const absl::StatusOr<Json> changed =
      api_.merge_patch(kEndpointSlices, owner.ns, slice.name, "", slice.object);
  if (changed.ok()) store_.offer(*changed);
  // Deleted a moment ago: its watch tells, and it is created. And where OwnerReferencesPermissionEnforcement
  // is on, only who may delete it may give it another owner: it goes with the one that it has.
  const bool goes = slice.from_earlier_job && absl::IsPermissionDenied(changed.status());
  if (goes || absl::IsNotFound(changed.status())) return absl::AbortedError(changed.status().message());
  return with_context_and_time(changed.status(), what_is(owner, slice));
}

absl::Status NamePublisher::write(const Owner& owner, SliceWrite& slice) {
  if (!slice.resource_version.empty()) return change(owner, slice);
  const std::string what = what_is(owner, slice);
  const absl::StatusOr<Json> created = api_.create(kEndpointSlices, owner.ns, slice.object);
  if (created.ok()) store_.offer(*created);
  if (namespace_ends(created.status())) return absl::CancelledError(created.status().message());
  if (!absl::IsAlreadyExists(created.status())) return with_context_and_time(created.status(), what);
  const absl::StatusOr<Json> there = api_.get(kEndpointSlices, owner.ns, slice.name);
  if (absl::IsNotFound(there.status())) return absl::AbortedError(there.status().message());
  PL_RETURN_IF_ERROR(there.status());
  if (!is_our_slice(*there)) {
    return absl::FailedPreconditionError(
        str_cat(what, " exists, but is not the controller's; delete it, or give the job another name"));
  }
  if (text_at(*there, {"metadata", "labels", kJobNameLabel}) != owner.job) {  // our watch does not bring it
    slice.resource_version = text_at(*there, {"metadata", "resourceVersion"});
    return change(owner, slice);
  }
  store_.offer(*there);
  return absl::AbortedError(str_cat(what, " is there already, and is looked at again"));
}

}  // namespace paceline::kube
