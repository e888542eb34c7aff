#include "controller/cluster/kube/name_publisher.h"

#include <utility>

#include "base/retry_after.h"
#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

NamePublisher::NamePublisher(ApiClient& api, const Clock& clock, Logger log, Informer::OnChange on_change,
                             const NamePublisherOptions& options)
    : api_(api),
      clock_(clock),
      store_(slim_slice),
      informer_(api, {kEndpointSlices, options.ns, kOurSlices}, store_, clock, std::move(log), options.seed,
                std::move(on_change), options.limits, options.pause) {}

absl::StatusOr<std::optional<Duration>> NamePublisher::publish(
    const Owner& owner, std::size_t pods_wanted, std::vector<std::shared_ptr<const SlimPod>> pods) {
  if (!informer_.synced()) {
    PL_RETURN_IF_ERROR(informer_.first_list());
    return kListLook;
  }
  const std::string key = str_cat(owner.ns, "/", owner.job);
  std::optional<TimePoint> since;
  {
    auto gathering = gathering_.lock();
    if (const auto found = gathering->find(key); found != gathering->end()) since = found->second;
  }
  SliceWrites writes =
      slice_writes({owner, pods_wanted, std::move(pods), store_.of_job(key)}, since, clock_.now());
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

absl::Status NamePublisher::write(const Owner& owner, SliceWrite& slice) {
  const std::string what = str_cat("endpointslice ", owner.ns, "/", slice.name);
  if (!slice.resource_version.empty()) {
    slice.object["metadata"]["resourceVersion"] = slice.resource_version;
    const absl::StatusOr<Json> changed =
        api_.merge_patch(kEndpointSlices, owner.ns, slice.name, "", slice.object);
    if (changed.ok()) store_.offer(*changed);
    // Deleted a moment ago: its watch tells, and it is created.
    if (absl::IsNotFound(changed.status())) return absl::AbortedError(changed.status().message());
    return with_context_and_time(changed.status(), what);
  }
  const absl::StatusOr<Json> created = api_.create(kEndpointSlices, owner.ns, slice.object);
  if (created.ok()) store_.offer(*created);
  if (namespace_ends(created.status())) return absl::CancelledError(created.status().message());
  if (!absl::IsAlreadyExists(created.status())) return with_context_and_time(created.status(), what);
  PL_ASSIGN_OR_RETURN(const Json there, api_.get(kEndpointSlices, owner.ns, slice.name));
  if (!slim_slice(there)) {
    return absl::FailedPreconditionError(
        str_cat(what, " exists, but is not the controller's; delete it, or give the job another name"));
  }
  store_.offer(there);
  return absl::AbortedError(str_cat(what, " is there already, and is looked at again"));
}

}  // namespace paceline::kube
