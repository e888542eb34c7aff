#pragma once

// A node's conditions and taints, and what they say of it that may slow down or end what runs there: those of
// Kubernetes itself, and those that tools which watch the hardware set. And for how long an answer counts.
//
// A condition is trouble where it is not as it should be. One that is named ...Ready or ...Healthy should be
// True; any other one, as the node problem detector sets them, should not be. A taint is trouble where its
// key is one of Kubernetes' own (https://kubernetes.io/docs/reference/labels-annotations-taints), or was
// named by who runs the controller: others keep pods away for other reasons.
//
// Pure; one thread at a time.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

struct NodeSigns {
  std::vector<std::string> taints;              // keys that count, beside Kubernetes' own
  std::vector<std::string> ignored_conditions;  // types that do not
};

// "condition GpuUnhealthy (XidError: GPU 3 has fallen off the bus), taint example.com/repair"; empty: none.
std::string trouble_of(const Json& node, const NodeSigns& signs);

inline constexpr std::size_t kMostNodes = 1000;  // that are remembered
inline constexpr Duration kBetweenNodeLooks = std::chrono::seconds(30);

class NodeTroubles {
 public:
  // Whether the node is to be asked about now. It is then, or is not known: either way set() follows.
  bool is_old(const std::string& node, TimePoint now) const;
  void set(const std::string& node, std::string trouble, TimePoint now);
  std::string of(const std::string& node) const;

 private:
  struct Known {
    std::string trouble;
    TimePoint asked;
  };
  std::map<std::string, Known> nodes_;
};

}  // namespace paceline::kube
