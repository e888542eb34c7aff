#include "controller/coordinator/core_hello.h"

#include <set>

#include "base/sanitize.h"
#include "base/text.h"

namespace paceline::coordinator {

namespace {

std::string name_error(const char* field, const std::string& value, bool required) {
  if (required && value.empty()) return str_cat("Hello.", field, " is empty");
  if (value.size() > kMaxNameBytes) {
    return str_cat("Hello.", field, " has ", value.size(), " bytes; at most ", kMaxNameBytes, " are allowed");
  }
  return "";
}

std::string address_error(const v1::DataAddress& address) {
  if (address.tcp_size() > kMaxAddresses) {
    return str_cat("Hello.address.tcp has ", address.tcp_size(), " entries; at most ", kMaxAddresses,
                   " are allowed");
  }
  for (const std::string& tcp : address.tcp()) {
    if (std::string error = name_error("address.tcp", tcp, true); !error.empty()) return error;
  }
  return name_error("address.local_socket", address.local_socket(), false);
}

std::string slot_error(const v1::Hello& hello, const CoreConfig& config) {
  std::string expected;
  for (const ExpectedRole& role : config.roles) {
    if (static_cast<int>(hello.role()) == static_cast<int>(role.role) &&
        hello.index() < static_cast<std::uint32_t>(role.count)) {
      return "";
    }
    if (role.count > 0) {
      expected += str_cat(expected.empty() ? "" : ", ", role_name(role.role), "-0");
      if (role.count > 1) expected += str_cat(" to ", role_name(role.role), "-", role.count - 1);
    }
  }
  const bool known = v1::RoleKind_IsValid(hello.role());
  return str_cat("the job has no ", known ? role_name(static_cast<Role>(hello.role())) : "such role", " ",
                 hello.index(), "; its members are ", expected);
}

}  // namespace

std::string hello_error(const v1::Hello& hello, const CoreConfig& config) {
  if (hello.protocol_version() != kProtocolVersion) {
    return str_cat("protocol version ", hello.protocol_version(), " is not spoken here, only ",
                   kProtocolVersion, ": member and controller must be of the same release");
  }
  if (std::string error = name_error("job", hello.job(), true); !error.empty()) return error;
  if (hello.job() != config.job) return str_cat("this is job ", config.job, ", not ", hello.job());
  for (const auto& [field, value, required] :
       {std::tuple{"member_id", &hello.member_id(), true}, std::tuple{"pod", &hello.pod(), false},
        std::tuple{"host", &hello.host(), false}, std::tuple{"host_id", &hello.host_id(), false}}) {
    if (std::string error = name_error(field, *value, required); !error.empty()) return error;
  }
  // Evaluators have attempts of their own.
  if (hello.role() != v1::ROLE_EVALUATOR && hello.attempt() != config.attempt) {
    return str_cat("pod ", hello.pod(), " is of attempt ", hello.attempt(), ", and this is attempt ",
                   config.attempt);
  }
  // Evaluators have no links.
  if (config.training.encrypts_links() && hello.role() != v1::ROLE_EVALUATOR && !hello.speaks_tls()) {
    return str_cat("the image of pod ", hello.pod(), " is of a release that does not know ",
                   "spec.strategy.encryption: TLS, and would send in the clear: give it an image of the ",
                   "controller's release, or set encryption: None");
  }
  if (std::string error = address_error(hello.address()); !error.empty()) return error;
  return slot_error(hello, config);
}

bool is_of_later_attempt(const v1::Hello& hello, const CoreConfig& config) {
  return hello.role() != v1::ROLE_EVALUATOR && hello.attempt() > config.attempt;  // those have their own
}

std::string heartbeat_error(const v1::Heartbeat& heartbeat, Generation generation) {
  if (heartbeat.generation() > generation.value) {
    return str_cat("a heartbeat of generation ", heartbeat.generation(), ", but the newest is ",
                   generation.value);
  }
  if (heartbeat.records_size() > kMaxRecordsPerHeartbeat ||
      heartbeat.step_times_size() > kMaxRecordsPerHeartbeat) {
    return str_cat("a heartbeat with ", std::max(heartbeat.records_size(), heartbeat.step_times_size()),
                   " step records; at most ", kMaxRecordsPerHeartbeat, " are allowed");
  }
  if (heartbeat.step_times_size() != heartbeat.step_time_steps_size()) {
    return str_cat("a heartbeat with ", heartbeat.step_times_size(), " step times of ",
                   heartbeat.step_time_steps_size(), " steps");
  }
  if (heartbeat.evaluations_size() > kMaxEvaluationsPerHeartbeat) {
    return str_cat("a heartbeat with ", heartbeat.evaluations_size(), " evaluations; at most ",
                   kMaxEvaluationsPerHeartbeat, " are allowed");
  }
  return "";
}

std::string cut(const std::string& text, std::size_t limit) {
  return utf8_prefix(text, limit);
}

absl::Status validate(const CoreConfig& config) {
  const auto wrong = [](const auto&... parts) { return absl::InvalidArgumentError(str_cat(parts...)); };
  if (config.job.empty() || config.job.size() > kMaxNameBytes)
    return wrong("the job's name has ", config.job.size(), " bytes");
  if (config.link_key.size() != 32)
    return wrong("the link key has ", config.link_key.size(), " bytes, not 32");
  std::set<Role> seen;
  int members = 0, trainers = 0;
  for (const ExpectedRole& role : config.roles) {
    if (!seen.insert(role.role).second) return wrong("role ", role_name(role.role), " is given twice");
    if (role.count < 0 || role.count > kMaxMembers) return wrong(role.count, " ", role_name(role.role), "s");
    if (role.role == Role::kChief && role.count > 1)
      return wrong(role.count, " chiefs; at most one is possible");
    members += role.count;
    if (role.role == Role::kChief || role.role == Role::kWorker) trainers += role.count;
  }
  if (trainers < 1 || members > kMaxMembers)
    return wrong(members, " members, of which ", trainers, " train; 1 to ", kMaxMembers, " are possible");
  for (const Duration d : {config.heartbeat_interval, config.heartbeat_timeout, config.form_timeout,
                           config.stop_timeout, config.save_timeout}) {
    if (d <= Duration::zero()) return wrong("a duration of ", format_duration(d));
  }
  if (config.min_trainers < 1) return wrong("a ring of ", config.min_trainers, " that train");
  if (config.grace < Duration::zero()) return wrong("a grace of ", format_duration(config.grace));
  if (config.report_window < config.grace) {
    return wrong("a report window of ", format_duration(config.report_window), " is less than the grace, ",
                 format_duration(config.grace));
  }
  if (config.most_silence < config.heartbeat_timeout) {
    return wrong("a most silence of ", format_duration(config.most_silence),
                 " is less than the heartbeat timeout, ", format_duration(config.heartbeat_timeout));
  }
  if (config.heartbeat_timeout < 2 * config.heartbeat_interval) {
    return wrong("a heartbeat timeout of ", format_duration(config.heartbeat_timeout),
                 " for heartbeats every ", format_duration(config.heartbeat_interval),
                 "; it must be twice as long at least");
  }
  if (!config.on_member_lost) return wrong("no policy for lost members");
  return absl::OkStatus();
}

}  // namespace paceline::coordinator
