#include "runtime/member/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace paceline::member {
namespace {

using Variables = std::map<std::string, std::string>;

Variables good() {
  return {{"PACELINE_COORDINATOR", "127.0.0.1:4000"},
          {"PACELINE_JOB", "default/digits"},
          {"PACELINE_ROLE", "Worker"},
          {"PACELINE_INDEX", "2"},
          {"PACELINE_POD", "digits-worker-2-1"},
          {"PACELINE_POD_UID", "3f2a"},
          {"PACELINE_TOKEN", "secret-of-the-job"}};
}

TEST(EnvironmentTest, EverythingIsRead) {
  Variables variables = good();
  variables["PACELINE_START"] = "3";
  variables["PACELINE_SLOT"] = "5";
  variables["PACELINE_THREADS"] = "8";
  variables["PACELINE_HOST_FREE_MIB"] = "8000";
  variables["PACELINE_HOST_MEMBERS"] = "3";
  variables["PACELINE_DEVICE"] = "cuda:3";
  variables["PACELINE_CUDA_GRAPHS"] = "off";
  variables["PACELINE_ADDRESS"] = "fd00::7";
  variables["PACELINE_LOG_LEVEL"] = "DEBUG";
  const auto environment = parse_environment(variables);
  ASSERT_TRUE(environment.ok()) << std::string(environment.status().message());
  EXPECT_EQ(environment->coordinator, "127.0.0.1:4000");
  EXPECT_EQ(environment->job, "default/digits");
  EXPECT_EQ(environment->role, Role::kWorker);
  EXPECT_EQ(environment->index, 2);
  EXPECT_EQ(environment->slot, 5);
  EXPECT_EQ(parse_environment(good())->slot, 2);
  EXPECT_EQ(environment->pod, "digits-worker-2-1");
  EXPECT_EQ(environment->token, "secret-of-the-job");
  EXPECT_EQ(environment->threads, 8);
  EXPECT_EQ(environment->host_free_mib, 8000);
  EXPECT_EQ(environment->host_members, 3);
  EXPECT_EQ(environment->device.kind, DeviceChoice::Kind::kCuda);
  EXPECT_EQ(environment->device.ordinal, 3);
  EXPECT_FALSE(environment->cuda_graphs);
  EXPECT_TRUE(parse_environment(good())->cuda_graphs);
  EXPECT_EQ(environment->address, "fd00::7");
  EXPECT_EQ(environment->log_level, LogLevel::kDebug);
  EXPECT_EQ(environment->member_id(), "3f2a-3");
  EXPECT_EQ(environment->name(), "worker-2");
}

TEST(EnvironmentTest, EveryRoleOfAJobIsKnown) {
  auto variables = good();
  const std::vector<std::pair<const char*, Role>> roles = {{"chief", Role::kChief},
                                                           {"worker", Role::kWorker},
                                                           {"PS", Role::kServer},
                                                           {"Evaluator", Role::kEvaluator}};
  for (const auto& [name, role] : roles) {
    variables["PACELINE_ROLE"] = name;
    const auto environment = parse_environment(variables);
    ASSERT_TRUE(environment.ok()) << environment.status();
    EXPECT_EQ(environment->role, role) << name;
  }
}

TEST(EnvironmentTest, DevicesAreNamed) {
  using Kind = DeviceChoice::Kind;
  struct Case {
    const char* value;
    Kind kind;
    std::optional<int> ordinal;
  };
  for (const Case& c :
       {Case{"", Kind::kAuto, {}}, Case{"auto", Kind::kAuto, {}}, Case{"cpu", Kind::kCpu, {}},
        Case{"cuda", Kind::kCuda, {}}, Case{"cuda:0", Kind::kCuda, 0}, Case{"cuda:63", Kind::kCuda, 63}}) {
    auto variables = good();
    variables["PACELINE_DEVICE"] = c.value;
    const auto environment = parse_environment(variables);
    ASSERT_TRUE(environment.ok()) << environment.status();
    EXPECT_EQ(environment->device.kind, c.kind) << c.value;
    EXPECT_EQ(environment->device.ordinal, c.ordinal) << c.value;
  }
}

TEST(EnvironmentTest, OptionalVariablesHaveDefaults) {
  const auto environment = parse_environment(good());
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->start, 1);
  EXPECT_EQ(environment->threads, 0);
  EXPECT_EQ(environment->host_free_mib, 0);
  EXPECT_EQ(environment->host_members, 1);
  EXPECT_EQ(environment->address, "127.0.0.1");
  EXPECT_EQ(environment->log_level, LogLevel::kInfo);
}

TEST(EnvironmentTest, EachVariableThatIsWrongIsNamed) {
  struct Case {
    const char *variable, *value, *says;  // value null: not set
  };
  const Case cases[] = {
      {"PACELINE_COORDINATOR", nullptr, "is not set"},
      {"PACELINE_COORDINATOR", "", "is not set"},
      {"PACELINE_JOB", "digits", "namespace/name"},
      {"PACELINE_JOB", "a/b/c", "namespace/name"},
      {"PACELINE_ROLE", nullptr, "chief, worker, ps, evaluator"},
      {"PACELINE_ROLE", "boss", "\"boss\""},
      {"PACELINE_INDEX", nullptr, "is not set"},
      {"PACELINE_INDEX", "", "whole number"},
      {"PACELINE_INDEX", "-1", "0 to 1023"},
      {"PACELINE_INDEX", "1024", "0 to 1023"},
      {"PACELINE_INDEX", "2x", "\"2x\""},
      {"PACELINE_INDEX", "99999999999999999999", "0 to 1023"},
      {"PACELINE_POD", nullptr, "pod's name"},
      {"PACELINE_POD_UID", nullptr, "uid"},
      {"PACELINE_START", "0", "1 to"},
      {"PACELINE_TOKEN", nullptr, "token"},
      {"PACELINE_THREADS", "many", "whole number"},
      {"PACELINE_HOST_MEMBERS", "0", "whole number"},
      {"PACELINE_DEVICE", "gpu", "auto, cpu, cuda"},
      {"PACELINE_DEVICE", "cuda:", "\"cuda:\""},
      {"PACELINE_DEVICE", "cuda:64", "0 to 63"},
      {"PACELINE_DEVICE", "cuda:1x", "\"cuda:1x\""},
      {"PACELINE_DEVICE", "cpu:1", "\"cpu:1\""},
      {"PACELINE_CUDA_GRAPHS", "no", "on or off"},
      {"PACELINE_ADDRESS", "worker-2.digits", "an IP address"},
      {"PACELINE_LOG_LEVEL", "loud", "debug, info, warning, error"},
  };
  for (const Case& c : cases) {
    Variables variables = good();
    variables.erase(c.variable);
    if (c.value != nullptr) variables[c.variable] = c.value;
    const absl::Status status = parse_environment(variables).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.variable;
    const std::string message(status.message());
    EXPECT_NE(message.find(c.variable), std::string::npos) << message;
    EXPECT_NE(message.find(c.says), std::string::npos) << message;
  }
}

TEST(EnvironmentTest, AllErrorsComeAtOnceAndNoToken) {
  Variables variables = good();
  variables["PACELINE_TOKEN"] = std::string(300, 's');
  variables["PACELINE_INDEX"] = "x";
  variables["PACELINE_ROLE"] = "x";
  const std::string message(parse_environment(variables).status().message());
  for (const char* part : {"PACELINE_TOKEN", "PACELINE_INDEX", "PACELINE_ROLE"})
    EXPECT_NE(message.find(part), std::string::npos);
  EXPECT_EQ(message.find("ssss"), std::string::npos);
}

TEST(EnvironmentTest, OnlyOurVariablesAreTaken) {
  ASSERT_EQ(setenv("PACELINE_TEST_ONLY", "a=b", 1), 0);
  const Variables variables = process_environment();
  unsetenv("PACELINE_TEST_ONLY");
  EXPECT_EQ(variables.at("PACELINE_TEST_ONLY"), "a=b");
  for (const auto& [name, _] : variables) EXPECT_EQ(name.substr(0, 9), "PACELINE_");
}

}  // namespace
}  // namespace paceline::member
