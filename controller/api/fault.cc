#include "controller/api/fault.h"

namespace paceline::api {

namespace {

constexpr const char* kCauseNames[] = {"Exited",        "Killed",    "OOMKilled",      "NotStarted",
                                       "Silent",        "Hung",      "Diverged",       "DeadlineExceeded",
                                       "Evicted",       "Preempted", "NodeLost",       "NodeShutdown",
                                       "RefusedByNode", "Deleted",   "ControllerLost", "Resized"};
constexpr const char* kFaultNames[] = {"Missing",  "Died",    "Frozen",     "Hung",   "Failed", "Unreachable",
                                       "Diverged", "Refused", "NotStarted", "Killed", "Exited", "Deleted"};
constexpr const char* kObservationNames[] = {
    "StreamEnded", "Silent",        "KeepsView", "TakesNoStep",   "NotJoined",  "Said",
    "Stopped",     "BrokeProtocol", "PodEnded",  "PodEndedEarly", "PodDeleted", "NodeNotReady",
    "Diverged",    "OutOfView",     "LostLink",  "PeerReports",   "Refused"};

}  // namespace

bool is_charged(RestartCause cause) {
  return cause < RestartCause::kEvicted;
}

const char* name(RestartCause value) {
  return kCauseNames[static_cast<std::size_t>(value)];
}
const char* name(FaultKind value) {
  return kFaultNames[static_cast<std::size_t>(value)];
}
const char* name(ObservationKind value) {
  return kObservationNames[static_cast<std::size_t>(value)];
}

}  // namespace paceline::api
