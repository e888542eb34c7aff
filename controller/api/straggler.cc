#include "controller/api/straggler.h"

namespace paceline::api {

namespace {

constexpr const char* kStragglerKindNames[] = {"Slow", "MoreWork", "AllSlow"};
constexpr const char* kStragglerCauseNames[] = {"Unknown",     "CpuQuota", "CpuContention", "MemoryPressure",
                                                "GpuSlowdown", "Storage",  "Input"};

}  // namespace

const char* name(StragglerKind value) {
  return kStragglerKindNames[static_cast<std::size_t>(value)];
}
const char* name(StragglerCause value) {
  return kStragglerCauseNames[static_cast<std::size_t>(value)];
}

}  // namespace paceline::api
