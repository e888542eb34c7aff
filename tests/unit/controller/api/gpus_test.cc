#include "controller/api/gpus.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"

namespace paceline::api {
namespace {

ReplicaSpec with_containers(const std::string& containers) {
  return {.pod_template = str_cat("{spec: {containers: [", containers, "]}}")};
}

std::string with_limits(const std::string& limits) {
  return str_cat("{name: trainer, resources: {limits: {", limits, "}}}");
}

TEST(Gpus, LimitsOfTheMembersContainerSayIt) {
  EXPECT_TRUE(asks_for_gpus(with_containers(with_limits("nvidia.com/gpu: 1"))));
  EXPECT_TRUE(asks_for_gpus(with_containers(with_limits("cpu: 4, \"nvidia.com/gpu\": \"8\""))));
  EXPECT_TRUE(asks_for_gpus(with_containers(with_limits("nvidia.com/mig-1g.10gb: 2"))));
  EXPECT_FALSE(asks_for_gpus(with_containers(with_limits("cpu: 4"))));
  EXPECT_FALSE(asks_for_gpus(with_containers(with_limits("nvidia.com/gpu: 0")))) << "none";
  EXPECT_FALSE(asks_for_gpus(with_containers("{env: [{name: A, value: \"nvidia.com/gpu: 1\"}]}")));
  EXPECT_FALSE(asks_for_gpus(with_containers("{resources: {requests: {nvidia.com/gpu: 1}}}")));
}

TEST(Gpus, AnotherContainersLimitsAreNotTheMembers) {
  ReplicaSpec role = with_containers(str_cat("{name: other}, ", with_limits("nvidia.com/gpu: 1")));
  EXPECT_FALSE(asks_for_gpus(role));
  role.container_index = 1;
  EXPECT_TRUE(asks_for_gpus(role));
  role.container_index = 2;
  EXPECT_FALSE(asks_for_gpus(role));
}

TEST(Gpus, ATemplateWithoutSuchPartsAsksForNone) {
  for (const char* const text : {"", "{}", "{spec: }", "{spec: {containers: 1}}", "{spec: {containers: [1]}}",
                                 "{spec: {containers: [{resources: {limits: [1]}}]}}"})
    EXPECT_FALSE(asks_for_gpus({.pod_template = text})) << text;
}

}  // namespace
}  // namespace paceline::api
