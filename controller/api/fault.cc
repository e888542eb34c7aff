#include "controller/api/fault.h"

namespace paceline::api {

namespace {

constexpr const char* kCauseNames[] = {"Exited",    "Killed",         "OOMKilled",        "OutOfMemory",
                                       "NotFinite", "DataUnreadable", "NotStarted",       "Silent",
                                       "Hung",      "Diverged",       "DeadlineExceeded", "Evicted",
                                       "Preempted", "NodeLost",       "NodeShutdown",     "RefusedByNode",
                                       "Deleted",   "ControllerLost", "Resized",          "Unfit"};
constexpr const char* kFaultNames[] = {"Missing",     "Died",        "Frozen",    "Hung",
                                       "Failed",      "OutOfMemory", "NotFinite", "DataUnreadable",
                                       "Unreachable", "Diverged",    "Refused",   "NotStarted",
                                       "Killed",      "Exited",      "Deleted",   "Unfit"};
constexpr const char* kObservationNames[] = {
    "StreamEnded",   "Silent",     "KeepsView",      "TakesNoStep", "NotJoined",     "Said",
    "OutOfMemory",   "NotFinite",  "DataUnreadable", "Stopped",     "BrokeProtocol", "PodEnded",
    "PodEndedEarly", "PodDeleted", "NodeNotReady",   "Diverged",    "OutOfView",     "LostLink",
    "PeerReports",   "Refused",    "Unfit"};

}  // namespace

bool is_charged(RestartCause cause) {
  return cause < RestartCause::kEvicted;
}

bool is_own_word(FaultKind kind) {
  return kind >= FaultKind::kFailed && kind <= FaultKind::kDataUnreadable;
}
bool is_own_word(ObservationKind seen) {
  return seen >= ObservationKind::kSaid && seen <= ObservationKind::kDataUnreadable;
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
