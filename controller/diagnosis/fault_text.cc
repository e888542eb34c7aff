#include "controller/diagnosis/fault_text.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/process_end.h"
#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"

namespace paceline::diagnosis {

namespace {

using api::FaultKind;
using api::ObservationKind;

struct Words {
  FaultKind kind;      // that it makes of a member
  const char* phrase;  // before the detail
  const char* glue;    // between the two
};

// In the order of ObservationKind.
constexpr Words kWords[] = {{FaultKind::kDead, "its control stream ended without a goodbye", ": "},
                            {FaultKind::kFrozen, "no heartbeat for", " "},
                            {FaultKind::kFrozen, "when told to, it did not end view", " "},
                            {FaultKind::kHung, "it is in", " "},
                            {FaultKind::kMissing, "it did not join within", " "},
                            {FaultKind::kFailed, "", ""},
                            {FaultKind::kOutOfMemory, "", ""},
                            {FaultKind::kNotFinite, "", ""},
                            {FaultKind::kDataUnreadable, "", ""},
                            {FaultKind::kFailed, "it was stopped", ": "},
                            {FaultKind::kFailed, "it broke the protocol", ": "},
                            {FaultKind::kDead, "its process ended", ": "},
                            {FaultKind::kDead, "its process ended before it attached", ": "},
                            {FaultKind::kDeleted, "its pod was deleted", ": "},
                            {FaultKind::kDead, "its node is not ready", ": "},
                            {FaultKind::kDiverged, "its weights differ from those of", " "},
                            {FaultKind::kUnreachable, "", ""},
                            {FaultKind::kUnreachable, "it lost its link to", " "},
                            {FaultKind::kUnreachable, "", ""},
                            {FaultKind::kRefused, "its token is not the job's", ": "},
                            {FaultKind::kUnfit, "", ""}};

const Words& words_for(ObservationKind seen) {
  return kWords[static_cast<std::size_t>(seen)];
}

// In the order of FaultKind; empty: the end of its process says it.
constexpr const char* kVerbs[] = {"never joined",
                                  "died",
                                  "stopped answering",
                                  "hangs",
                                  "failed",
                                  "ran out of memory",
                                  "has a loss or a gradient that is not finite",
                                  "can't read its data",
                                  "can't be reached by its peers",
                                  "has other weights than its peers",
                                  "is refused",
                                  "",
                                  "",
                                  "",
                                  "was deleted",
                                  "fails the check before the first step"};

const char* verb_of(FaultKind kind) {
  return kVerbs[static_cast<std::size_t>(kind)];
}

bool is_end(ObservationKind seen) {
  return seen == ObservationKind::kPodEnded || seen == ObservationKind::kPodEndedEarly;
}

bool ends_by_itself(FaultKind kind) {
  return *verb_of(kind) == '\0';
}

// The cluster's own words for the end of its pod.
std::string words_in(const std::vector<api::Observation>& evidence) {
  const auto told = std::ranges::find_if(evidence, [](const api::Observation& seen) {
    return is_end(seen.kind) || seen.kind == ObservationKind::kPodDeleted;
  });
  return told == evidence.end() ? "" : told->detail;
}

std::string in_brackets(const std::string& words) {
  return words.empty() ? "" : str_cat(" (", words, ")");
}

std::string end_text(bool started, std::optional<int> exit_code, std::optional<int> signal,
                     const std::string& words) {
  if (!started) return str_cat("could not be started: ", words);
  if (!exit_code && !signal) return words.empty() ? "ended" : str_cat("ended: ", words);
  const char* const why =
      ", as it happens where a mapped file, of data or weights, is cut short or "
      "shared memory runs out";
  return str_cat(signal ? "was " : "", exit_text(exit_code, signal), signal == SIGBUS ? why : "",
                 in_brackets(words));
}

std::string subject(const api::Fault& fault) {
  std::string inside;
  if (!fault.pod.empty()) inside = str_cat("pod ", fault.pod);
  if (fault.pid > 0) inside += str_cat(inside.empty() ? "" : ", ", "pid ", fault.pid);
  return str_cat(member_name(fault.role, fault.index), in_brackets(inside));
}

std::string predicate(const api::Fault& fault) {
  if (ends_by_itself(fault.kind))
    return end_text(fault.kind != FaultKind::kNotStarted, fault.exit_code, fault.signal,
                    words_in(fault.evidence));
  if (fault.kind == FaultKind::kDeleted)
    return str_cat(verb_of(fault.kind), in_brackets(words_in(fault.evidence)));
  return verb_of(fault.kind);
}

// The sentence has not said it already.
bool adds(const api::Fault& fault, ObservationKind seen) {
  if (seen == ObservationKind::kPodEnded) return false;
  if (seen == ObservationKind::kStreamEnded && ends_by_itself(fault.kind)) return false;
  return !(seen == ObservationKind::kPodDeleted && fault.kind == FaultKind::kDeleted);
}

}  // namespace

api::FaultKind kind_of(ObservationKind seen) {
  return words_for(seen).kind;
}

std::string reason_of(const api::Fault& fault) {
  return str_cat("Member", api::name(fault.kind));
}

std::string text_of(const api::Observation& seen) {
  const Words words = words_for(seen.kind);
  return seen.detail.empty() ? words.phrase : str_cat(words.phrase, words.glue, seen.detail);
}

std::string text_of(const api::Victim& victim) {
  const std::string name = member_name(victim.role, victim.index);
  if (is_end(victim.seen.kind) && !victim.same)
    return str_cat(name, " ", end_text(true, victim.exit_code, victim.signal, victim.seen.detail));
  if (victim.seen.kind == ObservationKind::kLostLink)
    return str_cat(name, " lost its link to ", victim.seen.detail);
  return victim.same ? str_cat(name, " failed by the same") : str_cat(name, ": ", text_of(victim.seen));
}

std::string message_of(const api::Fault& fault) {
  std::string message = str_cat(subject(fault), " ", predicate(fault));
  const bool started = fault.kind != FaultKind::kMissing && fault.kind != FaultKind::kRefused &&
                       fault.kind != FaultKind::kUnfit;
  if (fault.step && started && fault.role != Role::kEvaluator) {
    // One that hangs tells its step by heartbeats; any other may have taken steps since it was heard.
    const bool knows = fault.kind == FaultKind::kHung;
    message += str_cat(knows ? " at step " : ", last heard of at step ", *fault.step);
  }
  const char* glue = ": ";
  for (const api::Observation& seen : fault.evidence) {
    if (!adds(fault, seen.kind)) continue;
    // The words of an end stand in the sentence.
    const std::string text = text_of(is_end(seen.kind) ? api::Observation{seen.kind, ""} : seen);
    if (!text.empty()) message += str_cat(std::exchange(glue, "; "), text);
  }
  const bool has_end = fault.exit_code || fault.signal;
  if (has_end && !ends_by_itself(fault.kind))
    message +=
        str_cat("; its process ", end_text(true, fault.exit_code, fault.signal, words_in(fault.evidence)));
  if (fault.cause == api::RestartCause::kOomKilled)
    message +=
        "; give it more memory (of a pod: resources.limits.memory), or let it take less: fewer samples at "
        "once "
        "(training.microBatchSize), or a smaller model";
  glue = "; the same happened to ";
  for (const api::Victim& victim : fault.victims) {
    if (victim.same) message += str_cat(std::exchange(glue, ", "), member_name(victim.role, victim.index));
  }
  return message;
}

std::string victims_of(const api::Fault& fault) {
  std::string text;
  const char* glue = "; as a consequence ";
  for (const api::Victim& victim : fault.victims) {
    if (!victim.same) text += str_cat(std::exchange(glue, ", "), text_of(victim));
  }
  return fault.more_victims > 0 ? str_cat(text, glue, fault.more_victims, " more") : text;
}

std::string end_of(const cluster::Pod& pod) {
  return end_text(pod.reason != "StartError", pod.exit_code, pod.signal, words_of(pod));
}

}  // namespace paceline::diagnosis
