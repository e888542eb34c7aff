#include "controller/bin/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::controller {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kHead[] = "apiVersion: config.paceline.dev/v1alpha1\nkind: ControllerConfiguration\n";

std::string errors(const std::string& rest) {
  const std::string text = str_cat(kHead, rest);
  const ParsedConfig parsed = parse_config(text, "c.yaml");
  EXPECT_EQ(parsed.config.has_value(), parsed.diagnostics.empty());
  return api::render_diagnostics(parsed.diagnostics, text);
}

TEST(ConfigTest, DefaultsAreKubernetesOwn) {
  const ParsedConfig parsed = parse_config(kHead, "c.yaml");
  ASSERT_TRUE(parsed.config);
  EXPECT_TRUE(parsed.config->leader_election.enabled);
  EXPECT_EQ(parsed.config->leader_election.lease_duration_seconds, 15);
  EXPECT_EQ(parsed.config->leader_election.renew_deadline_seconds, 10);
  EXPECT_EQ(parsed.config->leader_election.retry_period_seconds, 2);
  EXPECT_EQ(parsed.config->log_format, LogFormat::kJson);
  EXPECT_EQ(parsed.config->ns, "");
}

TEST(ConfigTest, EveryFieldIsRead) {
  const ParsedConfig parsed = parse_config(str_cat(kHead, R"(
namespace: team-a
workers: 3
trainer: {image: "registry.example/paceline:1"}
nodes: {taints: [example.com/repair], ignoredConditions: [Frequent]}
log: {format: text, level: warning}
health: {address: "127.0.0.1:1", tls: {enabled: true}}
dashboard: {address: "127.0.0.1:4", tls: {enabled: true, certificateFile: /page/tls.crt, keyFile: /page/tls.key},
  history: {path: /history/jobs.db, megabytes: 64, days: 7}}
coordinator: {listen: "127.0.0.1:2", address: "paceline.svc:3", memberLogLevel: debug,
  tls: {enabled: true, secret: mine, certificateFile: /tls/tls.crt, keyFile: /tls/tls.key, authorityFile: /tls/ca.crt}}
leaderElection: {enabled: false, namespace: system, name: lock, leaseDurationSeconds: 30, renewDeadlineSeconds: 20, retryPeriodSeconds: 5}
metrics: {jobs: 7, members: 0}
)"),
                                           "c.yaml");
  ASSERT_TRUE(parsed.config) << parsed.diagnostics.front().problem;
  const Config& c = *parsed.config;
  EXPECT_EQ(c.ns, "team-a");
  EXPECT_EQ(c.workers, 3);
  EXPECT_EQ(c.trainer_image, "registry.example/paceline:1");
  EXPECT_THAT(c.node_taints, ElementsAre("example.com/repair"));
  EXPECT_THAT(c.ignored_conditions, ElementsAre("Frequent"));
  EXPECT_EQ(c.log_format, LogFormat::kText);
  EXPECT_EQ(c.log_level, LogLevel::kWarning);
  EXPECT_EQ(c.member_log_level, LogLevel::kDebug);
  EXPECT_EQ(c.health_address, "127.0.0.1:1");
  EXPECT_TRUE(c.health_tls);
  EXPECT_EQ(c.dashboard_address, "127.0.0.1:4");
  EXPECT_TRUE(c.dashboard_tls.enabled);
  EXPECT_EQ(c.dashboard_tls.certificate_file, "/page/tls.crt");
  EXPECT_EQ(c.dashboard_tls.key_file, "/page/tls.key");
  EXPECT_EQ(c.history.path, "/history/jobs.db");
  EXPECT_EQ(c.history.megabytes, 64);
  EXPECT_EQ(c.history.days, 7);
  EXPECT_EQ(c.coordinator_listen, "127.0.0.1:2");
  EXPECT_EQ(c.coordinator_address, "paceline.svc:3");
  EXPECT_TRUE(c.tls.enabled);
  EXPECT_EQ(c.tls.secret, "mine");
  EXPECT_EQ(c.tls.certificate_file, "/tls/tls.crt");
  EXPECT_EQ(c.tls.key_file, "/tls/tls.key");
  EXPECT_EQ(c.tls.authority_file, "/tls/ca.crt");
  EXPECT_FALSE(c.leader_election.enabled);
  EXPECT_EQ(c.leader_election.ns, "system");
  EXPECT_EQ(c.leader_election.name, "lock");
  EXPECT_EQ(c.leader_election.lease_duration_seconds, 30);
  EXPECT_EQ(c.leader_election.renew_deadline_seconds, 20);
  EXPECT_EQ(c.leader_election.retry_period_seconds, 5);
  EXPECT_EQ(c.metrics.jobs, 7);
  EXPECT_EQ(c.metrics.members, 0);
}

TEST(ConfigTest, AnElectionTakesItsTimesFromThere) {
  LeaderElection election;
  election.lease_duration_seconds = 30;
  election.renew_deadline_seconds = 20;
  election.retry_period_seconds = 5;
  const lease::ElectionConfig config = election_config(election, "me", "here:1");
  EXPECT_EQ(config.identity, "me");
  EXPECT_EQ(config.address, "here:1");
  EXPECT_EQ(config.lease_duration, std::chrono::seconds(30));
  EXPECT_EQ(config.renew_deadline, std::chrono::seconds(20));
  EXPECT_EQ(config.retry_period, std::chrono::seconds(5));
}

TEST(ConfigTest, AnAuthorityIsMadeForPortsThatHaveNoCertificateElse) {
  const auto needs = [](const char* rest) {
    const ParsedConfig parsed = parse_config(str_cat(kHead, rest), "c.yaml");
    EXPECT_TRUE(parsed.config) << rest;
    return parsed.config && needs_authority(*parsed.config);
  };
  EXPECT_FALSE(needs(""));
  EXPECT_TRUE(needs("coordinator: {tls: {enabled: true}}\n"));
  EXPECT_TRUE(needs("health: {tls: {enabled: true}}\n"));
  EXPECT_TRUE(needs("dashboard: {address: \"127.0.0.1:1\", tls: {enabled: true}}\n"));
  EXPECT_FALSE(needs("dashboard: {tls: {enabled: true}}\n")) << "there is none";
  EXPECT_FALSE(
      needs("dashboard: {address: \"127.0.0.1:1\", tls: {enabled: true, certificateFile: c, keyFile: k}}\n"));
  EXPECT_FALSE(
      needs("health: {tls: {enabled: true}}\n"
            "coordinator: {tls: {enabled: true, certificateFile: c, keyFile: k, authorityFile: a}}\n"));
}

TEST(ConfigTest, ErrorsNameThePlaceAndWhatIsAllowed) {
  struct {
    const char* text;
    std::vector<const char*> says;
  } cases[] = {
      {"wrokers: 3\n", {"c.yaml:3:1: error: wrokers: unknown field", "did you mean \"workers\"?"}},
      {"workers: 0\n", {"c.yaml:3:", "workers", "1 to 256"}},
      {"dashboard: {history: {megabytes: 1}}\n", {"dashboard.history.megabytes", "16 to 65536"}},
      {"log: {format: xml}\n", {"log.format", "text, json"}},
      {"leaderElection: {renewDeadlineSeconds: 20}\n", {"c.yaml:3:1", "shorter than the lease duration"}},
      {"leaderElection: yes please\n", {"leaderElection", "a map"}},
      {"coordinator: {tls: {enabled: true, keyFile: k}}\n", {"coordinator.tls", "all three"}},
      {"coordinator: {tls: {certificateFile: c, keyFile: k, authorityFile: a}}\n",
       {"coordinator.tls", "enabled"}},
      {"dashboard: {tls: {enabled: true, keyFile: k}}\n", {"dashboard.tls", "both"}},
      {"dashboard: {tls: {certificateFile: c, keyFile: k}}\n", {"dashboard.tls", "enabled"}},
      {"namespace: Team_A\n", {"namespace", "did you mean \"team-a\"?"}},
      {"workers: 1\nworkers: 2\n", {"workers"}},
      {"log: {level: info\n", {"c.yaml:"}},
  };
  for (const auto& c : cases) {
    const std::string text = errors(c.text);
    for (const char* says : c.says) EXPECT_THAT(text, HasSubstr(says)) << c.text;
  }
}

TEST(ConfigTest, AnotherVersionIsRefused) {
  EXPECT_FALSE(
      parse_config("apiVersion: config.paceline.dev/v2\nkind: ControllerConfiguration\n", "c").config);
}

TEST(ConfigTest, AFileWithoutAConfigurationIsToldWhatItShouldBe) {
  for (const char* text : {"", "# workers: 3\n", "---\n", "[1]\n"}) {
    const ParsedConfig parsed = parse_config(text, "c.yaml");
    EXPECT_FALSE(parsed.config);
    EXPECT_THAT(api::render_diagnostics(parsed.diagnostics, text),
                AllOf(HasSubstr("c.yaml:1:1: error: the file holds no configuration"),
                      HasSubstr("apiVersion: config.paceline.dev/v1alpha1, kind: ControllerConfiguration")))
        << text;
  }
}

}  // namespace
}  // namespace paceline::controller
