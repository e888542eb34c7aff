#pragma once

// The objects that we create for a job: its pods, its headless Service, the Secret with its token. Every
// addition to a user's pod template stands in docs/kubernetes.md. Pure.

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::kube {

inline constexpr char kTokenKey[] = "token";                // in the job's Secret
inline constexpr char kTokenVariable[] = "PACELINE_TOKEN";  // in PodSpec::env; never in a Pod object
inline constexpr char kDeviceVariable[] = "PACELINE_DEVICE";
// Where members may write: a volume of this name, the template's or an emptyDir, is mounted there.
inline constexpr char kWorkFolder[] = "/paceline";
inline constexpr char kWorkVolume[] = "paceline";
// The container that hears of the trainer's steps (PodSpec::hears_steps), and where it does.
inline constexpr char kStepsContainer[] = "paceline-steps";
inline constexpr char kStepsVariable[] = "PACELINE_STEPS";
inline constexpr char kStepsAddress[] = "@paceline-steps-$(PACELINE_POD_UID)";

// The job whose children they are. Without a uid they are made without an owner.
struct Owner {
  std::string ns, job, uid;
};

// Names of a job's children. One that would be no DNS label makes pod_manifest() fail.
std::string host_name(const cluster::PodSpec& spec);  // <job>-<role>-<index>, whatever the attempt
std::string service_name(std::string_view job);       // the job's
// <job>-token-<uid>: a kubelet serves a Secret that pods of an earlier job of this name still use, and asks
// for no other one of that name. Without a uid: <job>-token, as earlier versions named every job's.
std::string secret_name(std::string_view job, std::string_view job_uid);

// A Pod from the spec's template (spec.pod_template, JSON; empty: one container `trainer`). `image` is for a
// trainer container without one, and for the one that hears of steps. INVALID_ARGUMENT says what of the
// template or the names can't be.
absl::StatusOr<Json> pod_manifest(const cluster::PodSpec& spec, std::string_view image);

// Its selector finds the job's pods, ready or not, and Kubernetes publishes their host names.
Json service_manifest(const Owner& owner);
// Whether a job's Service selects as service_manifest() does; an earlier version's does not.
bool selects_pods(const Json& service, std::string_view job);
// A merge patch after which it does.
Json selecting_pods(std::string_view job, std::string_view resource_version);
Json secret_manifest(const Owner& owner, std::string_view token);

// The uid of the TrainingJob that controls an object; empty where there is none.
std::string owner_uid(const Json& object);

}  // namespace paceline::kube
