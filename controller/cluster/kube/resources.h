#pragma once

// The kinds of objects that we use, and where the API server has them. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "controller/api/scalars.h"

namespace paceline::kube {

struct Resource {
  std::string_view api_version;  // "v1", "apps/v1"
  std::string_view plural;
  std::string_view kind;
};

inline constexpr Resource kPods{"v1", "pods", "Pod"};
inline constexpr Resource kServices{"v1", "services", "Service"};
inline constexpr Resource kNodes{"v1", "nodes", "Node"};
inline constexpr Resource kSecrets{"v1", "secrets", "Secret"};
inline constexpr Resource kEvents{"events.k8s.io/v1", "events", "Event"};
inline constexpr Resource kLeases{"coordination.k8s.io/v1", "leases", "Lease"};
inline constexpr Resource kTokenReviews{"authentication.k8s.io/v1", "tokenreviews", "TokenReview"};
inline constexpr Resource kAccessReviews{"authorization.k8s.io/v1", "subjectaccessreviews",
                                         "SubjectAccessReview"};
inline constexpr Resource kTrainingJobs{"paceline.dev/v1alpha1", "trainingjobs", "TrainingJob"};

// What is added to objects, and found again by.
inline constexpr const char* kJobNameLabel = "paceline.dev/job-name";
inline constexpr const char* kRoleLabel = "paceline.dev/role";
inline constexpr const char* kIndexLabel = "paceline.dev/index";
inline constexpr const char* kAttemptLabel = "paceline.dev/attempt";
inline constexpr const char* kDeletedAnnotation = "paceline.dev/deleted";  // a time: a history alone has it
inline constexpr const char* kAvoidsAnnotation = "paceline.dev/avoids";    // a node's name
// What role_name() calls it, in letters of any case: labels, keys of replicaSpecs, what users type.
std::optional<Role> role_named(std::string_view text);

using Query = std::vector<std::pair<std::string_view, std::string>>;  // in this order; empty values left out

// /api/v1/namespaces/NS/pods[/NAME[/SUBRESOURCE]][?key=value&...]; all namespaces where `ns` is empty.
// Everything is percent-encoded: no name can leave its place.
std::string path_of(const Resource& resource, std::string_view ns, std::string_view name = {},
                    std::string_view subresource = {}, const Query& query = {});

using api::is_dns_label;

}  // namespace paceline::kube
