#include "controller/bin/config.h"

#include <utility>

#include "controller/api/choices.h"
#include "controller/api/read_fields.h"

namespace paceline::api {

template <>
inline constexpr Choice kChoices<LogFormat>[] = {{"text"}, {"json"}};
template <>
inline constexpr Choice kChoices<LogLevel>[] = {{"debug"}, {"info"}, {"warning"}, {"error"}};

}  // namespace paceline::api

namespace paceline::controller {

namespace {

constexpr std::int64_t kMostWorkers = 256, kLongestSeconds = 3600, kMostSeries = 100'000;
constexpr std::int64_t kLeastMegabytes = 16, kMostMegabytes = 64 << 10, kMostDays = 3650;
constexpr std::size_t kMostNodeSigns = 64;
constexpr char kUnused[] = "files of a certificate are named, and enabled is not true";

void visit(api::FieldVisitor& v, LeaderElection& e) {
  v.flag({.name = "enabled"}, e.enabled);
  v.text({.name = "namespace"}, api::TextKind::kNamespace, e.ns);
  v.text({.name = "name"}, api::TextKind::kObjectName, e.name);
  v.integer({.name = "leaseDurationSeconds"}, {1, kLongestSeconds}, e.lease_duration_seconds);
  v.integer({.name = "renewDeadlineSeconds"}, {1, kLongestSeconds}, e.renew_deadline_seconds);
  v.integer({.name = "retryPeriodSeconds"}, {1, kLongestSeconds}, e.retry_period_seconds);
}

void visit(api::FieldVisitor& v, Tls& t) {
  v.flag({.name = "enabled"}, t.enabled);
  v.text({.name = "secret"}, api::TextKind::kObjectName, t.secret);
  v.text({.name = "certificateFile"}, api::TextKind::kPath, t.certificate_file);
  v.text({.name = "keyFile"}, api::TextKind::kPath, t.key_file);
  v.text({.name = "authorityFile"}, api::TextKind::kPath, t.authority_file);
}

void visit(api::FieldVisitor& v, DashboardTls& t) {
  v.flag({.name = "enabled"}, t.enabled);
  v.text({.name = "certificateFile"}, api::TextKind::kPath, t.certificate_file);
  v.text({.name = "keyFile"}, api::TextKind::kPath, t.key_file);
}

void visit(api::FieldVisitor& v, Config& c) {
  v.constant({.name = "apiVersion", .required = true}, "config.paceline.dev/v1alpha1");
  v.constant({.name = "kind", .required = true}, "ControllerConfiguration");
  v.text({.name = "namespace"}, api::TextKind::kNamespace, c.ns);
  v.integer({.name = "workers"}, {1, kMostWorkers}, c.workers);
  v.object({.name = "trainer"}, [&] { v.text({.name = "image"}, api::TextKind::kImage, c.trainer_image); });
  v.object({.name = "nodes"}, [&] {
    v.texts({.name = "taints"}, api::TextKind::kPath, {0, kMostNodeSigns}, c.node_taints);
    v.texts({.name = "ignoredConditions"}, api::TextKind::kPath, {0, kMostNodeSigns}, c.ignored_conditions);
  });
  v.object({.name = "log"}, [&] {
    v.choice({.name = "format"}, c.log_format);
    v.choice({.name = "level"}, c.log_level);
  });
  v.object({.name = "health"}, [&] {
    v.text({.name = "address"}, api::TextKind::kPath, c.health_address);
    v.object({.name = "tls"}, [&] { v.flag({.name = "enabled"}, c.health_tls); });
  });
  v.object({.name = "dashboard"}, [&] {
    v.text({.name = "address"}, api::TextKind::kPath, c.dashboard_address);
    v.object({.name = "tls"}, [&] { visit(v, c.dashboard_tls); });
    v.object({.name = "history"}, [&] {
      v.text({.name = "path"}, api::TextKind::kPath, c.history.path);
      v.integer({.name = "megabytes"}, {kLeastMegabytes, kMostMegabytes}, c.history.megabytes);
      v.integer({.name = "days"}, {1, kMostDays}, c.history.days);
    });
  });
  v.object({.name = "coordinator"}, [&] {
    v.text({.name = "listen"}, api::TextKind::kPath, c.coordinator_listen);
    v.text({.name = "address"}, api::TextKind::kPath, c.coordinator_address);
    v.choice({.name = "memberLogLevel"}, c.member_log_level);
    v.object({.name = "tls"}, [&] { visit(v, c.tls); });
  });
  v.object({.name = "leaderElection"}, [&] { visit(v, c.leader_election); });
  v.object({.name = "metrics"}, [&] {
    v.integer({.name = "jobs"}, {0, kMostSeries}, c.metrics.jobs);
    v.integer({.name = "members"}, {0, kMostSeries}, c.metrics.members);
  });
}

}  // namespace

const char* log_level_name(LogLevel level) {
  return api::kChoices<LogLevel>[static_cast<std::size_t>(level)].name;
}

lease::ElectionConfig election_config(const LeaderElection& election, std::string identity,
                                      std::string address) {
  return {.identity = std::move(identity),
          .address = std::move(address),
          .lease_duration = std::chrono::seconds(election.lease_duration_seconds),
          .renew_deadline = std::chrono::seconds(election.renew_deadline_seconds),
          .retry_period = std::chrono::seconds(election.retry_period_seconds)};
}

bool needs_authority(const Config& config) {
  const bool dashboard = !config.dashboard_address.empty() && config.dashboard_tls.enabled &&
                         config.dashboard_tls.key_file.empty();
  return config.tls.key_file.empty() && (config.tls.enabled || config.health_tls || dashboard);
}

std::string config_error(const Config& config) {
  const LeaderElection& e = config.leader_election;
  return e.enabled ? lease::config_error(election_config(e, "any", "")) : "";
}

namespace {

std::string tls_error(const Tls& tls) {
  const bool some = !tls.certificate_file.empty() || !tls.key_file.empty() || !tls.authority_file.empty();
  const bool all = !tls.certificate_file.empty() && !tls.key_file.empty() && !tls.authority_file.empty();
  if (some && !all)
    return "certificateFile, keyFile and authorityFile go together: give all three, or none, and the "
           "controller "
           "makes its own";
  return some && !tls.enabled ? kUnused : "";
}

std::string tls_error(const DashboardTls& tls) {
  if (tls.certificate_file.empty() != tls.key_file.empty())
    return "certificateFile and keyFile go together: give both, or none, and the controller makes its own";
  return !tls.key_file.empty() && !tls.enabled ? kUnused : "";
}

}  // namespace

ParsedConfig parse_config(std::string_view text, std::string_view file_name) {
  ParsedConfig parsed;
  Config& config = parsed.config.emplace();
  parsed.diagnostics =
      api::read_fields(text, file_name,
                       {.what = "configuration",
                        .allowed = "a map with apiVersion: config.paceline.dev/v1alpha1, "
                                   "kind: ControllerConfiguration and settings",
                        .visit = [&](api::FieldVisitor& visitor) { visit(visitor, config); },
                        .check = [&]() -> std::pair<std::string, std::string> {
                          if (std::string error = tls_error(config.tls); !error.empty())
                            return {"coordinator.tls", std::move(error)};
                          if (std::string error = tls_error(config.dashboard_tls); !error.empty())
                            return {"dashboard.tls", std::move(error)};
                          return {"leaderElection", config_error(config)};
                        }});
  if (api::has_errors(parsed.diagnostics)) parsed.config.reset();
  return parsed;
}

}  // namespace paceline::controller
