#include "cli/cluster/names.h"

#include <charconv>

#include "base/text.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::cli {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

}  // namespace

absl::StatusOr<std::string> job_name_of(std::string_view text) {
  std::string_view name = text;
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string kind = lower(text.substr(0, slash));
    for (const std::string_view known :
         {"tj", "trainingjob", "trainingjobs", "trainingjob.paceline.dev", "trainingjobs.paceline.dev"}) {
      if (kind == known) name = text.substr(slash + 1);
    }
  }
  if (kube::is_dns_label(name)) return std::string(name);
  return absl::InvalidArgumentError(str_cat(
      "\"", text, "\" is no job's name; allowed: lower-case letters, digits and '-', also as tj/NAME"));
}

std::string resource_name(std::string_view job) {
  return str_cat("trainingjob.paceline.dev/", job);
}

absl::StatusOr<MemberPattern> member_pattern(std::string_view text) {
  if (text.empty()) return MemberPattern{};
  const std::size_t end = text.find_first_of("/-");
  const auto role = kube::role_named(text.substr(0, end));
  int index = 0;
  const std::string_view digits = end == std::string_view::npos ? "" : text.substr(end + 1);
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool number = error == std::errc() && stop == digits.data() + digits.size() && index >= 0;
  if (!role || (end != std::string_view::npos && !number)) {
    return absl::InvalidArgumentError(str_cat("\"", text,
                                              "\" is no member; allowed: a role (chief, worker, ps, "
                                              "evaluator), or one of it: worker/1 or worker-1"));
  }
  return MemberPattern{role, number ? std::optional(index) : std::nullopt};
}

}  // namespace paceline::cli
