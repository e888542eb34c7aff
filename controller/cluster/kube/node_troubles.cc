#include "controller/cluster/kube/node_troubles.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMostTroubles = 4, kMostTextBytes = 160;
constexpr std::string_view kOwnTaints = "node.kubernetes.io/";
constexpr std::string_view kCordoned = "node.kubernetes.io/unschedulable";  // somebody's wish

bool is_among(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

std::string condition_text(const Json& condition, const NodeSigns& signs) {
  const std::string& type = text_at(condition, {"type"});
  const std::string& status = text_at(condition, {"status"});
  if (type.empty() || is_among(signs.ignored_conditions, type)) return "";
  const bool should_be = type.ends_with("Ready") || type.ends_with("Healthy");
  const bool is_well = should_be ? status == "True" || (status == "Unknown" && type != "Ready")
                                 : status == "False" || status == "Unknown";
  if (is_well) return "";
  const std::string& reason = text_at(condition, {"reason"});
  const std::string& message = text_at(condition, {"message"});
  const std::string why =
      sanitize_line(str_cat(reason, reason.empty() || message.empty() ? "" : ": ", message), kMostTextBytes);
  return str_cat("condition ", type, should_be ? str_cat(" is ", status) : "",
                 why.empty() ? "" : str_cat(" (", why, ")"));
}

}  // namespace

std::string trouble_of(const Json& node, const NodeSigns& signs) {
  std::vector<std::string> troubles;
  for (const Json& condition : list_at(node, {"status", "conditions"})) {
    if (std::string text = condition_text(condition, signs); !text.empty())
      troubles.push_back(std::move(text));
  }
  const bool told =
      !troubles.empty();  // Kubernetes' own taints follow from conditions, but for out-of-service
  for (const Json& taint : list_at(node, {"spec", "taints"})) {
    const std::string& key = text_at(taint, {"key"});
    const bool own = key.starts_with(kOwnTaints) && key != kCordoned &&
                     (!told || key == "node.kubernetes.io/out-of-service");
    if (own || is_among(signs.taints, key)) troubles.push_back(str_cat("taint ", key));
  }
  std::string all;
  for (std::size_t i = 0; i < std::min(troubles.size(), kMostTroubles); ++i)
    all += str_cat(all.empty() ? "" : ", ", troubles[i]);
  return all;
}

bool NodeTroubles::is_old(const std::string& node, TimePoint now) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() || now - known->second.asked >= kBetweenNodeLooks;
}

void NodeTroubles::set(const std::string& node, std::string trouble, TimePoint now) {
  if (nodes_.size() >= kMostNodes && !nodes_.contains(node)) {
    nodes_.erase(std::ranges::min_element(nodes_, {}, [](const auto& each) { return each.second.asked; }));
  }
  nodes_[node] = {std::move(trouble), now};
}

std::string NodeTroubles::of(const std::string& node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? "" : known->second.trouble;
}

}  // namespace paceline::kube
