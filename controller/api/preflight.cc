#include "controller/api/preflight.h"

namespace paceline::api {

namespace {

constexpr const char* kPreflightOutcomeNames[] = {"Passed", "Excluded", "Reported", "Failed"};
constexpr const char* kPreflightPartNames[] = {"Compute", "Link"};

}  // namespace

const char* name(PreflightOutcome value) {
  return kPreflightOutcomeNames[static_cast<std::size_t>(value)];
}
const char* name(PreflightPart value) {
  return kPreflightPartNames[static_cast<std::size_t>(value)];
}

}  // namespace paceline::api
