#include "controller/api/requests.h"

#include <charconv>

namespace paceline::api {

namespace {

constexpr const char* kRequestOutcomeNames[] = {"UnderWay", "Done", "Refused", "Failed"};

}  // namespace

std::optional<Member> member_named(std::string_view text) {
  text = text.substr(0, text.find('@'));
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(dash + 1);
  Member member;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), member.index);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.starts_with('-');
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    member.role = role;
    if (whole && text.substr(0, dash) == role_name(role)) return member;
  }
  return std::nullopt;
}

const char* name(RequestOutcome value) {
  return kRequestOutcomeNames[static_cast<std::size_t>(value)];
}

}  // namespace paceline::api
