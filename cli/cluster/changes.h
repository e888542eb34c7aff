#pragma once

// Objects as they change: a watch that goes on after what breaks it.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "cli/cluster/call.h"
#include "controller/cluster/kube/api_client.h"

namespace paceline::cli {

struct Changes {
  kube::Scope scope;
  std::string resource_version;  // of the list that it goes on from
  Asked asked;
  // Each object that was added or has changed; false ends it.
  std::function<bool(const kube::Json& object)> on_object;
  // The server has forgotten that version: lists anew, and returns the list's.
  std::function<absl::StatusOr<std::string>()> relist;
};

// OK when on_object ends it, CANCELLED when asked to end, or what can't be mended by trying again: no right,
// no such resource, bad credentials. Anything else is said once on call.err, and tried again, at first after
// 1 s, at last every 30 s; so is, without a word, a watch that ends at once and brings nothing.
absl::Status follow_changes(Call& call, Changes changes);

}  // namespace paceline::cli
