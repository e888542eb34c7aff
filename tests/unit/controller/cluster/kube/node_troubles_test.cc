#include "controller/cluster/kube/node_troubles.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kAsked{1h};

Json sign(const char* type, const char* status, const char* reason = "", const char* message = "") {
  return {{"type", type}, {"status", status}, {"reason", reason}, {"message", message}};
}

Json node(const std::vector<Json>& conditions, const std::vector<Json>& taints = {}) {
  return {{"spec", {{"taints", Json(taints)}}}, {"status", {{"conditions", Json(conditions)}}}};
}

Json taint(const char* key) {
  return {{"key", key}, {"effect", "NoSchedule"}};
}

TEST(NodeTroublesTest, NodeThatIsWellHasNone) {
  const Json well = node({sign("Ready", "True", "KubeletReady"), sign("MemoryPressure", "False"),
                          sign("KernelReady", "Unknown"), sign("GpuUnhealthy", "Unknown")},
                         {taint("nvidia.com/gpu"), taint("node.kubernetes.io/unschedulable")});
  EXPECT_EQ(trouble_of(well, {}), "");
  EXPECT_EQ(trouble_of(Json::object(), {}), "");
  EXPECT_EQ(trouble_of(Json{{"status", 7}}, {}), "");
}

TEST(NodeTroublesTest, ConditionIsTroubleWhereItIsNotAsItShouldBe) {
  EXPECT_EQ(trouble_of(node({sign("GpuUnhealthy", "True", "XidError", "GPU 3 has\nfallen off")}), {}),
            "condition GpuUnhealthy (XidError: GPU 3 has fallen off)");
  EXPECT_EQ(trouble_of(node({sign("AcceleratedHardwareReady", "False", "Xid79")}), {}),
            "condition AcceleratedHardwareReady is False (Xid79)");
  EXPECT_EQ(trouble_of(node({sign("Ready", "Unknown")}, {taint("node.kubernetes.io/unreachable")}), {}),
            "condition Ready is Unknown")
      << "the taint follows from it";
}

TEST(NodeTroublesTest, TaintCountsWhereItIsKubernetesOwnOrIsNamed) {
  const NodeSigns signs{.taints = {"example.com/repair"}, .ignored_conditions = {"Frequent"}};
  EXPECT_EQ(trouble_of(node({sign("Ready", "False"), sign("Frequent", "True")},
                            {taint("node.kubernetes.io/out-of-service"), taint("example.com/repair"),
                             taint("example.com/other")}),
                       signs),
            "condition Ready is False, taint node.kubernetes.io/out-of-service, taint example.com/repair");
  EXPECT_EQ(trouble_of(node({}, {taint("node.kubernetes.io/disk-pressure")}), signs),
            "taint node.kubernetes.io/disk-pressure");
}

TEST(NodeTroublesTest, TextIsBounded) {
  std::vector<Json> conditions;
  for (int i = 0; i < 100; ++i)
    conditions.push_back(sign(str_cat("Bad", i).c_str(), "True", "", std::string(10'000, 'x').c_str()));
  EXPECT_LT(trouble_of(node(conditions), {}).size(), 1000U);
}

TEST(NodeTroublesTest, AnswerCountsForAWhile) {
  NodeTroubles troubles;
  EXPECT_TRUE(troubles.is_old("a", kAsked));
  EXPECT_EQ(troubles.of("a"), "");
  troubles.set("a", "trouble", kAsked);
  EXPECT_FALSE(troubles.is_old("a", kAsked + kBetweenNodeLooks - 1ms));
  EXPECT_TRUE(troubles.is_old("a", kAsked + kBetweenNodeLooks));
  EXPECT_EQ(troubles.of("a"), "trouble");
}

TEST(NodeTroublesTest, NodeThatWasAskedAboutFirstIsForgottenFirst) {
  NodeTroubles troubles;
  for (std::size_t i = 0; i <= kMostNodes; ++i)
    troubles.set(str_cat("node-", i), "trouble", kAsked + std::chrono::milliseconds(i));
  EXPECT_EQ(troubles.of("node-0"), "");
  EXPECT_EQ(troubles.of("node-1"), "trouble");
}

}  // namespace
}  // namespace paceline::kube
