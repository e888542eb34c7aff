#include "runtime/member/environment.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace paceline::member {

namespace {

constexpr int kMaxIndex = 1023;
constexpr int kMaxSlot = 3 * (kMaxIndex + 1) - 1;  // of three roles
constexpr int kMaxThreads = 4096;
constexpr int kMostAttempts = std::numeric_limits<int>::max();
constexpr int kMaxStarts = 1'000'000;
constexpr std::size_t kMaxValueBytes = 256, kMaxAuthorityBytes = 64 << 10;

class Parser {
 public:
  explicit Parser(const std::map<std::string, std::string>& variables) : variables_(variables) {}

  std::string text(const std::string& name, std::string_view allowed) {
    const std::string* value = find(name);
    if (value == nullptr || value->empty()) {
      wrong(str_cat(name, " is not set; it must be ", allowed));
      return "";
    }
    if (value->size() > kMaxValueBytes) {
      wrong(str_cat(name, " has ", value->size(), " bytes; at most ", kMaxValueBytes, " are allowed"));
      return "";
    }
    return *value;
  }

  std::string certificates(const std::string& name) {
    const std::string* value = find(name);
    if (value == nullptr || value->empty()) return "";
    if (value->starts_with("-----BEGIN CERTIFICATE-----") && value->size() <= kMaxAuthorityBytes)
      return *value;
    wrong(str_cat(name, " must be certificates in PEM, at most ", kMaxAuthorityBytes, " bytes"));
    return "";
  }

  int integer(const std::string& name, int least, int most, std::optional<int> fallback) {
    const std::string* value = find(name);
    if ((value == nullptr || value->empty()) && fallback) return *fallback;
    int result = 0;
    const char* end = value == nullptr ? nullptr : value->data() + value->size();
    if (value != nullptr) {
      const auto [at, error] = std::from_chars(value->data(), end, result);
      if (error == std::errc() && at == end && !value->empty() && result >= least && result <= most)
        return result;
    }
    wrong(str_cat(name, value == nullptr ? " is not set" : str_cat(" is \"", value->substr(0, 64), "\""),
                  "; it must be a whole number from ", least, " to ", most));
    return least;
  }

  std::string address(const std::string& name, const std::string& fallback) {
    const std::string* value = find(name);
    if (value == nullptr || value->empty()) return fallback;
    in6_addr any;
    if (::inet_pton(AF_INET, value->c_str(), &any) == 1 || ::inet_pton(AF_INET6, value->c_str(), &any) == 1)
      return *value;
    wrong(str_cat(name, " is \"", value->substr(0, 64),
                  "\"; it must be an IP address of this member, such as 10.0.0.7 or fd00::7"));
    return fallback;
  }

  // One of `names`, in any case: its place.
  std::size_t choice(const std::string& name, const std::vector<std::string_view>& names,
                     std::optional<std::size_t> fallback) {
    const std::string* value = find(name);
    if ((value == nullptr || value->empty()) && fallback) return *fallback;
    std::string lower = value == nullptr ? "" : *value, all;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (lower == names[i]) return i;
      all += str_cat(all.empty() ? "" : ", ", names[i]);
    }
    wrong(str_cat(name, value == nullptr ? " is not set" : str_cat(" is \"", value->substr(0, 64), "\""),
                  "; it must be one of ", all));
    return 0;
  }

  // What `parse` makes of it; its errors stand behind the name.
  template <typename Value>
  Value parsed(const std::string& name, absl::StatusOr<Value> parse(std::string_view)) {
    const std::string* value = find(name);
    const auto result = parse(value == nullptr ? "" : *value);
    if (result.ok()) return *result;
    wrong(str_cat(name, " ", result.status().message()));
    return {};
  }

  void wrong(std::string what) { errors_ += str_cat(errors_.empty() ? "" : "; ", what); }
  const std::string& errors() const { return errors_; }

 private:
  const std::string* find(const std::string& name) const {
    const auto it = variables_.find(name);
    return it == variables_.end() ? nullptr : &it->second;
  }

  const std::map<std::string, std::string>& variables_;
  std::string errors_;
};

}  // namespace

std::string Environment::member_id() const {
  return str_cat(pod_uid, "-", start);
}
std::string Environment::name() const {
  return str_cat(role_name(role), "-", index);
}

absl::StatusOr<Environment> parse_environment(const std::map<std::string, std::string>& variables) {
  Parser parser(variables);
  Environment result;
  result.coordinator =
      parser.text("PACELINE_COORDINATOR", "the coordinator's address, host:port or unix:/path");
  result.job = parser.text("PACELINE_JOB", "the job's namespace/name");
  if (!result.job.empty() && std::count(result.job.begin(), result.job.end(), '/') != 1) {
    parser.wrong(str_cat("PACELINE_JOB is \"", result.job, "\"; it must be namespace/name"));
  }
  result.role = static_cast<Role>(parser.choice("PACELINE_ROLE", {"chief", "worker", "ps", "evaluator"},
                                                std::nullopt));  // as Role numbers them
  result.index = parser.integer("PACELINE_INDEX", 0, kMaxIndex, std::nullopt);
  result.slot = parser.integer("PACELINE_SLOT", 0, kMaxSlot, result.index);
  result.pod = parser.text("PACELINE_POD", "the pod's name");
  result.pod_uid = parser.text("PACELINE_POD_UID", "the pod's uid");
  result.start = parser.integer("PACELINE_START", 1, kMaxStarts, 1);
  result.attempt = parser.integer("PACELINE_ATTEMPT", 0, kMostAttempts, 0);
  result.incarnation = parser.integer("PACELINE_INCARNATION", 0, kMostAttempts, 0);
  result.token = parser.text("PACELINE_TOKEN", "the job's token");
  result.authority = parser.certificates("PACELINE_AUTHORITY");
  result.address = parser.address("PACELINE_ADDRESS", result.address);
  result.threads = parser.integer("PACELINE_THREADS", 0, kMaxThreads, 0);
  result.host_free_mib =
      parser.integer("PACELINE_HOST_FREE_MIB", 0, std::numeric_limits<int>::max(), result.host_free_mib);
  result.host_members = parser.integer("PACELINE_HOST_MEMBERS", 1, kMaxSlot + 1, result.host_members);
  result.device = parser.parsed("PACELINE_DEVICE", parse_device_choice);
  result.cuda_graphs = parser.parsed("PACELINE_CUDA_GRAPHS", parse_cuda_graphs);
  constexpr LogLevel kLevels[] = {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError};
  result.log_level = kLevels[parser.choice("PACELINE_LOG_LEVEL", {"debug", "info", "warning", "error"}, 1)];
  if (!parser.errors().empty()) {
    return absl::InvalidArgumentError(
        str_cat(parser.errors(),
                " (the controller sets all of these but PACELINE_DEVICE, PACELINE_CUDA_GRAPHS and "
                "PACELINE_LOG_LEVEL; a member is not started by hand)"));
  }
  return result;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (text.substr(0, 9) == "PACELINE_" && equals != std::string_view::npos) {
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return result;
}

}  // namespace paceline::member
