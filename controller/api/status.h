#pragma once

// The status of a TrainingJob: the controller writes it, and no file has one. Each value lists its
// fields (base/fields.h): status_json.h writes and reads them, and the CRD's schema is made from them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fields.h"
#include "base/ids.h"
#include "base/telemetry.h"
#include "controller/api/fault.h"
#include "controller/api/preflight.h"
#include "controller/api/requests.h"
#include "controller/api/straggler.h"

namespace paceline::api {

// A job that the parser refuses: of one that has begun the type of a condition, of others why they failed.
inline constexpr char kInvalidSpec[] = "InvalidSpec";
inline constexpr char kCreated[] = "Created", kCheckpointFailed[] = "CheckpointFailed";
inline constexpr char kStraggling[] = "Straggling";
// The reasons of a run whose owner does not write what is told of it: it is stopped, or can't write.
inline constexpr char kOwnerStopped[] = "OwnerStopped", kStatusOld[] = "StatusOld";
// The types of status.conditions that are ours; those of phases are called as they are. All others are
// somebody else's (a queue's, a user's): a job's status has them, but nobody here goes by them or writes
// them.
inline constexpr const char* kConditionTypes[] = {kCreated,          "Running",   "Restarting",
                                                  "Suspended",       "Succeeded", "Failed",
                                                  kCheckpointFailed, kStraggling, kInvalidSpec};
bool is_our_condition(std::string_view type);

enum class Phase : std::uint8_t {
  kPending,
  kStarting,
  kRunning,
  kSucceeded,
  kFailed,
  kRestarting,
  kSuspended
};

// A condition as metav1.Condition: type and reason in CamelCase, message a sentence.
struct Condition {
  std::string type;
  bool status = false;
  std::string reason, message;
  WallTime last_transition{};
  SpecGeneration observed_generation;
  bool unknown = false;  // neither True nor False, which we never write; `status` is false then
  bool operator==(const Condition&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"type", "What is or is not so."}, x.type);
    visit(NamedField{"reason", "Why, in one word."}, x.reason);
    visit(NamedField{"message", "Why, in a sentence."}, x.message);
    visit(NamedField{.name = "lastTransitionTime", .about = "When status changed.", .always = true},
          x.last_transition);
    visit(NamedField{"observedGeneration", "The generation of the spec that this is about."},
          x.observed_generation.value);
  }
};

// Pods of one role, of every attempt that still has some.
struct ReplicaStatus {
  Role role = Role::kWorker;
  std::int64_t active = 0;                 // not ended
  std::int64_t ready = 0;                  // running, in the present attempt
  std::int64_t succeeded = 0, failed = 0;  // of the present attempt
  bool operator==(const ReplicaStatus&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"role", "chief, worker, ps or evaluator."}, x.role);
    visit(NamedField{"active", "Not ended."}, x.active);
    visit(NamedField{"ready", "Running, in the present attempt."}, x.ready);
    visit(NamedField{"succeeded", "Of the present attempt, gone or not."}, x.succeeded);
    visit(NamedField{"failed", "Of the present attempt, gone or not."}, x.failed);
  }
};

struct RestartCount {
  Role role = Role::kWorker;  // of the pod that was the cause
  RestartCause cause = RestartCause::kExited;
  std::int64_t count = 0;
  bool operator==(const RestartCount&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"role", "Of the pod that was the cause."}, x.role);
    visit(NamedField{"cause", "Exited, Killed, OOMKilled, ..."}, x.cause);
    visit(NamedField{"count"}, x.count);
  }
};

// Restarts that count against backoffLimit, where that has a window.
struct RestartTime {
  WallTime at{};
  std::int64_t count = 1;
  bool operator==(const RestartTime&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"at"}, x.at);
    visit(NamedField{.name = "count", .always = true}, x.count);  // else 0 is read as 1
  }
};

// How often the pod in a place was replaced: of a member since the attempt began, of a server or an evaluator
// outside the ring since all pods began together.
struct Replacement {
  Role role = Role::kServer;
  std::int64_t index = 0, count = 0;
  std::int64_t in_a_row = 0;                 // since it last lived for long
  std::optional<WallTime> last, not_before;  // when it was replaced; its next pod's back-off
  std::vector<RestartTime> recent;           // outside the ring: as Restarts::recent
  // In a ring: the pod of the member that fell silent here last, whose node may be dead; and while nobody
  // knows whether it is, since when the restart counts as Silent.
  std::string silent_pod;
  std::optional<WallTime> silent_since;
  std::int64_t successors = 0;  // numbers behind `count` that were given to successors of a slow member
  bool operator==(const Replacement&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"role"}, x.role);
    visit(NamedField{.name = "index", .always = true}, x.index);
    visit(NamedField{"count"}, x.count);
    visit(NamedField{"inARow", "Since it last lived for long."}, x.in_a_row);
    visit(NamedField{"last", "When it was replaced last."}, x.last);
    visit(NamedField{"notBefore", "Its pod is made at this time or later."}, x.not_before);
    visit(NamedField{"recent"}, x.recent);
    visit(NamedField{"silentPod", "Of the member that fell silent; its node may be dead."}, x.silent_pod);
    visit(NamedField{"silentSince", "The cause of its restart may yet change."}, x.silent_since);
    visit(NamedField{"successors", "Numbers of pods that were to take over, and have not."}, x.successors);
  }
};

// Restarts survive the controller: counters only grow (but that one kSilent may become another cause), and
// numbers of attempts are never used twice.
struct Restarts {
  // The number at the end of the members' pods' names, to which `replacements` add.
  std::int64_t attempt = 0;
  std::int64_t size = 0;  // members of this attempt; 0: it has not begun
  std::int64_t full_attempt =
      0;                      // the attempt in which all pods began together: 0, or since the last resumption
  std::int64_t in_a_row = 0;  // restarts since members last trained for long
  std::int64_t total = 0;     // the sum of by_cause, but for kResized
  std::vector<RestartCount> by_cause;     // sorted by role and cause
  std::vector<Replacement> replacements;  // sorted by role and index
  std::optional<WallTime> not_before;     // the attempt begins at this time or later (back-off)
  std::vector<RestartTime> recent;  // the earliest first: members' that count, with restartWindowSeconds
  bool operator==(const Restarts&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"attempt", "The number at the end of the members' pods' names, without replacements."},
          x.attempt);
    visit(NamedField{"size", "Members of this attempt."}, x.size);
    visit(NamedField{"fullAttempt", "In which all pods began together."}, x.full_attempt);
    visit(NamedField{"inARow", "Since members last trained for long."}, x.in_a_row);
    visit(NamedField{"total", "In all, without changes of size."}, x.total);
    visit(NamedField{"byCause", "How often, by the role and the cause."}, x.by_cause);
    visit(NamedField{"replacements", "Pods that took another one's place."}, x.replacements);
    visit(NamedField{"notBefore", "The attempt begins at this time or later."}, x.not_before);
    visit(NamedField{"recent", "Those that count, with restartWindowSeconds."}, x.recent);
  }
};

// How a view began that another one was before.
struct ViewChange {
  Generation generation;
  std::vector<std::string> came, left;  // "worker-1"
  std::string message;                  // why
  std::optional<double>
      noticed_seconds;  // from the loss of a member until it was known; nothing: nobody was lost
  double view_seconds = 0, state_seconds = 0,
         step_seconds = 0;  // proto/paceline/v1/coordinator.proto, ViewBegin
  Step step = 0;            // the first that was applied
  Step steps_lost = 0;      // that had been applied before, and were taken again
  bool restarted = false;   // all members have started again: the first view of an attempt that follows one
  bool operator==(const ViewChange&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"generation"}, x.generation.value);
    visit(NamedField{"came", "Who is in it, and was not in the one before."}, x.came);
    visit(NamedField{"left", "Who was."}, x.left);
    visit(NamedField{"message", "Why it began."}, x.message);
    visit(NamedField{"noticedSeconds", "From a member's loss until it was known."}, x.noticed_seconds);
    visit(NamedField{"viewSeconds", "From the last step before until the others had the view."},
          x.view_seconds);
    visit(NamedField{"stateSeconds", "From there until all were linked and had one state."}, x.state_seconds);
    visit(NamedField{"stepSeconds", "From there until the first step was applied."}, x.step_seconds);
    visit(NamedField{"step", "That step."}, x.step);
    visit(NamedField{.name = "stepsLost", .about = "Steps that were taken again.", .always = true},
          x.steps_lost);
    visit(NamedField{"restarted", "All members have started again, and none is in both views."}, x.restarted);
  }
};

struct ViewStatus {
  Generation generation;  // 0: none yet
  std::int64_t size = 0;
  std::optional<ViewChange> change;
  std::optional<Rebalance> rebalance;  // the newest
  bool operator==(const ViewStatus&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"generation", "Its number."}, x.generation.value);
    visit(NamedField{"size", "Members."}, x.size);
    visit(NamedField{"change", "How the newest view began that another one was before."}, x.change);
    visit(NamedField{"rebalance", "How shares of the global batch were set anew last."}, x.rebalance);
  }
};

struct Progress {
  Step step = 0;         // steps applied so far
  Step total_steps = 0;  // 0: not known yet
  double epoch = 0;
  std::optional<double> loss;                                // of the last step
  std::optional<double> test_loss, test_accuracy, test_auc;  // of the last evaluation
  double samples_per_second = 0;
  std::int64_t dropped_samples = 0;  // left out of partial steps by all members that the job has had
  double goodput = 0;                // share of goodput_seconds that went into steps that count, 0 to 1
  double goodput_seconds = 0;        // in which the job had a coordinator
  std::optional<double> eta_seconds;
  bool operator==(const Progress&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"step", "Steps applied so far."}, x.step);
    visit(NamedField{"totalSteps", "Steps in all."}, x.total_steps);
    visit(NamedField{"epoch", "Passes over the training set so far."}, x.epoch);
    visit(NamedField{"loss", "Of the last step."}, x.loss);
    visit(NamedField{"testLoss", "Of the last evaluation."}, x.test_loss);
    visit(NamedField{"testAccuracy", "Of the last evaluation."}, x.test_accuracy);
    visit(NamedField{"testAuc", "Of the last evaluation, of models that give one score."}, x.test_auc);
    visit(NamedField{"samplesPerSecond", "Of the last steps."}, x.samples_per_second);
    visit(NamedField{"droppedSamples",
                     "Left out of partial steps so far, by all members that the job has had."},
          x.dropped_samples);
    visit(NamedField{"goodput", "The share of the time that went into steps that count."}, x.goodput);
    visit(NamedField{"goodputSeconds",
                     "That time: in which the job was not suspended and a controller was there."},
          x.goodput_seconds);
    visit(NamedField{"etaSeconds", "Until the end, if nothing changes."}, x.eta_seconds);
  }
};

struct MemberStatus {
  Role role = Role::kWorker;
  std::int64_t index = 0;
  std::int64_t rank = -1;  // in the view; -1: not in it
  std::string pod, host;
  std::int64_t pid = 0;  // local runs; 0: unknown
  std::string phase;     // e.g. Training: its own word
  Step step = 0;
  MemberTelemetry telemetry;
  bool operator==(const MemberStatus&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"role", "chief, worker, ps or evaluator."}, x.role);
    visit(NamedField{.name = "index", .about = "Of its role, from 0.", .always = true}, x.index);
    visit(NamedField{.name = "rank", .about = "In the view; -1: not in it.", .always = true}, x.rank);
    visit(NamedField{"pod", "Its pod."}, x.pod);
    visit(NamedField{"host", "Where it runs."}, x.host);
    visit(NamedField{"pid", "Of its process, in a local run."}, x.pid);
    visit(NamedField{"phase", "Its own word (training), or its pod's."}, x.phase);
    visit(NamedField{"step", "Steps that it has applied."}, x.step);
    MemberTelemetry::fields(visit, x.telemetry);
  }
};

struct Status {
  Phase phase = Phase::kPending;
  std::string reason, message;  // why the phase is what it is
  std::vector<Condition> conditions;
  SpecGeneration observed_generation;           // the spec that this status is about
  std::vector<ReplicaStatus> replica_statuses;  // by role, of those that the job has
  Restarts restarts;
  ViewStatus view;
  Progress progress;
  std::vector<MemberStatus> members;
  std::optional<Preflight> preflight;                        // the newest
  std::vector<Straggler> stragglers;                         // found now
  std::vector<StragglerReplacement> straggler_replacements;  // the earliest first
  Requests requests;                                         // the newest of each kind
  std::optional<Fault> fault;          // of the newest restart or loss, or of the failure
  std::string last_checkpoint, model;  // paths; empty: none
  std::optional<WallTime> start_time, completion_time;
  bool operator==(const Status&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"phase", "Pending, Starting, Running, Restarting, Suspended, Succeeded or Failed."},
          x.phase);
    visit(NamedField{"reason", "Why the phase is what it is, in one word."}, x.reason);
    visit(NamedField{"message", "The same in a sentence."}, x.message);
    visit(NamedField{"conditions"}, x.conditions);
    visit(NamedField{"observedGeneration", "The generation of the spec that this is about."},
          x.observed_generation.value);
    visit(NamedField{"replicaStatuses", "Pods by role."}, x.replica_statuses);
    visit(NamedField{"restarts", "How often pods were started again, and why."}, x.restarts);
    visit(NamedField{"view", "Who trains together now."}, x.view);
    visit(NamedField{"progress", "From the members' heartbeats."}, x.progress);
    visit(NamedField{"members", "Who takes part, as each said it last."}, x.members);
    visit(NamedField{"preflight", "The newest check before a first step."}, x.preflight);
    visit(NamedField{"stragglers", "Members that hold the others back now."}, x.stragglers);
    visit(
        NamedField{"stragglerReplacements", "Slow members that were replaced, or were to be: the newest 16."},
        x.straggler_replacements);
    visit(NamedField{"requests", "What people asked of the job by annotations, and what came of it."},
          x.requests);
    visit(NamedField{"fault", "The member at fault, of the failure, or of the newest restart or loss."},
          x.fault);
    visit(NamedField{"lastCheckpoint", "The newest checkpoint."}, x.last_checkpoint);
    visit(NamedField{"model", "The folder of the final model."}, x.model);
    visit(NamedField{"startTime", "When the job's first pods were made."}, x.start_time);
    visit(NamedField{"completionTime", "When the job succeeded or failed."}, x.completion_time);
  }
};

// Removes somebody else's conditions.
void keep_our_conditions(Status& status);

const char* name(Phase value);

}  // namespace paceline::api
