#pragma once

// Which host names of a job lead to which pods, in which EndpointSlices, and when these are written. A
// Service with a selector would have Kubernetes' own controllers do it: two writes for every pod that gets an
// address, where one for all of them does. Pure.
//
// A host name (<job>-<role>-<index>) is one pod's: the newest attempt's, even before that one has an address.
// An older pod which is there still is of a node that is lost: nobody can end it, nobody knows whether it
// runs, and its peers must not find it. One of which nothing runs any more is not found, nor one that is
// being deleted on such a node. Who is not ready is: members look each other up before they are ready, and
// while they are asked to end, as Kubernetes has it for a Service with publishNotReadyAddresses.
//
// Slices are found by name, <job>-<n>-ipv4 or -ipv6: the n-th has the members with indices of
// [n x kSliceIndices, (n + 1) x kSliceIndices) of every role, so that a pod that comes or goes changes one
// slice of each family, and none has more endpoints than the API server takes (1,000). One that nothing is in
// any more is emptied: deletions would take another right.
//
// What is to change is gathered: it is written when just the pods that the job wants are there and have
// addresses (of a job that is over: when none is left), and otherwise kGathering after the first of it was
// seen. So eight pods that start together cost one write or two, eight that end one after another a write a
// second, and who has an address is found a second later at the latest, whatever the others wait for.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/manifest.h"
#include "controller/cluster/kube/pod.h"

namespace paceline::kube {

inline constexpr int kRolesOfJob = 4;
inline constexpr int kMostEndpoints = 1000;  // of a slice: the API server refuses more
inline constexpr int kSliceIndices = kMostEndpoints / kRolesOfJob;
inline constexpr Duration kGathering = std::chrono::seconds(1);

// What slices of ours are labelled with, and found by. Who takes one of these labels from a slice takes it
// from us: the watch says that it is gone.
inline constexpr char kManagedByLabel[] = "endpointslice.kubernetes.io/managed-by";
inline constexpr char kSliceManager[] = "controller.paceline.dev";
inline constexpr char kOurSlices[] =
    "endpointslice.kubernetes.io/managed-by=controller.paceline.dev,paceline.dev/job-name";

// An EndpointSlice of ours, without what it says.
struct SlimSlice {
  std::string key, job_key;  // namespace/name
  std::string resource_version;
  std::string owner;       // uid of its job
  std::uint64_t says = 0;  // a digest of its owner, its Service and its endpoints
  std::uint32_t endpoints = 0;
  bool operator==(const SlimSlice&) const = default;
};

// Whether it is a slice that we made, whatever became of it.
bool is_our_slice(const Json& object);

// Nothing where it is no slice of ours for a job.
std::optional<SlimSlice> slim_slice(const Json& object);

// A job's names, as they are and as they should be.
struct HostNames {
  Owner owner;
  std::size_t pods_wanted = 0;  // that have names once all are up; none of a job that is over
  std::vector<std::shared_ptr<const SlimPod>> pods;       // of any job of this name
  std::vector<std::shared_ptr<const SlimSlice>> present;  // the same
};

struct SliceWrite {
  std::string name;
  Json object;                    // whole
  std::string resource_version;   // of the one that is there and is to be changed; empty: it is to be made
  bool from_earlier_job = false;  // that one belongs to a job of this name which is gone
};

// At most one of both.
struct SliceWrites {
  std::vector<SliceWrite> now;
  std::optional<Duration> wait;  // ask again then, and whenever a pod or a slice has changed
};

// `since`: when a change that is not written yet was first seen; the caller keeps it for the job from one
// call to the next. Cost: O(pods x log pods).
SliceWrites slice_writes(const HostNames& names, std::optional<TimePoint>& since, TimePoint now);

}  // namespace paceline::kube
