#include "controller/api/straggler.h"

namespace paceline::api {

namespace {

constexpr const char* kStragglerKindNames[] = {"Slow", "MoreWork", "AllSlow", "SlowLink"};
constexpr const char* kStragglerCauseNames[] = {"Unknown",     "CpuQuota", "CpuContention", "MemoryPressure",
                                                "GpuSlowdown", "Storage",  "Input",         "Stopped",
                                                "Unfit",       "Requested"};

constexpr const char* kStragglerActionNames[] = {"Report", "Wait", "Replace", "Rebalance"};
constexpr const char* kReplacementOutcomeNames[] = {"UnderWay",    "Replaced",   "AsSlow",  "Recovered",
                                                    "NoSuccessor", "OverBefore", "Excluded"};

}  // namespace

const char* name(StragglerKind value) {
  return kStragglerKindNames[static_cast<std::size_t>(value)];
}
const char* name(StragglerCause value) {
  return kStragglerCauseNames[static_cast<std::size_t>(value)];
}

const char* name(StragglerAction value) {
  return kStragglerActionNames[static_cast<std::size_t>(value)];
}
const char* name(ReplacementOutcome value) {
  return kReplacementOutcomeNames[static_cast<std::size_t>(value)];
}

}  // namespace paceline::api
