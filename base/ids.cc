#include "base/ids.h"

#include "base/check.h"
#include "base/text.h"

namespace paceline {

const char* role_name(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kWorker:
      return "worker";
    case Role::kServer:
      return "ps";
    case Role::kEvaluator:
      return "evaluator";
  }
  PL_CHECK(false, "a role outside the enumeration");
}

std::string member_name(Role role, std::int64_t index) {
  return str_cat(role_name(role), "-", index);
}

}  // namespace paceline
