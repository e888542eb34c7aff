#pragma once

// Membership of one job as a pure state machine: step(input, now) -> effects (after etcd's raft and torchft's
// lighthouse).
//
//   Forming -> Running(g) -> Forming -> Running(g+1)     a member of a ring was lost, and the policy says: go
//                                                        on in the next view
//                         -> Draining(g) -> Forming      a member has come to a ring: all finish their step
//                         -> Finished | Failed           rank 0 left FINISHED | a verdict, and the policy
//                                                        says: fail
//   any -> Draining -> Stopped                           Stop
//   Forming -> Running(g)                                all members train in the same view g of an earlier
//                                                        coordinator: they go on in it
//   Running(g) -> Running(g)                             a member was lost, and the policy says: go on
//                                                        without it in the same view (servers), also in an
//                                                        earlier one whose members are gathered
//
// A place is a role and an index. Its member may be lost, and another one take the place: incarnations rise,
// and a lower one than the newest is refused, whenever it comes back. In a ring ranks are compact: a view has
// those that are there, chief before workers, each by index, and rank 0 is the first of them. A view is
// formed of all places at first, or after start_timeout of `min_trainers` at least; of those that are left
// when one is lost, down to that number; and anew when a member that is ready has come. Where some are to
// stand by, a view has that many fewer, and who is not in it waits, ready, until it is needed. With servers
// ranks are places.
//
// Members are those who train (chief, workers) and the servers. An evaluator is an observer: it is welcomed,
// what it evaluates counts, it is told when the job finishes; it is in no view, and nobody waits for it or
// misses it.
//
// One thread at a time; no clock, no randomness, no I/O. A `now` before an earlier one counts as that one.
// Anything the world may send is answered, at worst by an Evict with its reason; nothing that it sends makes
// the core crash or grow without bound.
//
// Diagnosis: what is seen of a member is evidence, kept with the moment since when it holds (a silent member:
// since it was last heard). `grace` after the first evidence the verdict names one member: the root cause, by
// the earliest hard evidence (diagnosis/root_cause.h). Peers' reports never name it by themselves: they only
// make the core look, and count when nothing better turns up: all of them, about all members
// (diagnosis/peer_reports.h).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/fault.h"
#include "controller/api/types.h"
#include "controller/coordinator/core_goodput.h"
#include "controller/coordinator/report.h"
#include "controller/plan/plan.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::coordinator {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr int kMaxMembers = 1024;
inline constexpr int kMaxRecordsPerHeartbeat = 256;
inline constexpr int kMaxEvaluationsPerHeartbeat = 64;
inline constexpr std::size_t kMaxNameBytes = 256;    // ids, pods, hosts, addresses: longer ones are refused
inline constexpr std::size_t kMaxTextBytes = 16384;  // reasons: longer ones are cut
inline constexpr int kMaxAddresses = 16;
inline constexpr std::size_t kMaxRefused = 1024;

// A stream of the shell, unique for the life of a job's core.
struct StreamId {
  std::uint64_t value = 0;
  auto operator<=>(const StreamId&) const = default;
};

struct ExpectedRole {
  Role role = Role::kWorker;  // of kChief at most one
  int count = 0;
  int standby = 0;  // so many of those wait until another one is lost; workers of a ring only
  bool operator==(const ExpectedRole&) const = default;
};

// The consequence of a member's loss.
enum class LossAction : std::uint8_t { kFailJob, kFormNextView, kGoOn };  // kGoOn: of a running view only
struct LossDecision {
  LossAction action = LossAction::kFailJob;
  std::string reason;
};
// `trainers_left`: members that train, without the lost one and those that were lost before.
using LossPolicy = std::function<LossDecision(const api::Fault&, int trainers_left)>;  // pure
// restartPolicy Never: "member X is lost and the job does not replace members".
LossDecision fail_on_loss(const api::Fault& verdict, int trainers_left);
// How a ring goes on without a member.
struct RingRules {
  api::RestartPolicy chief = api::RestartPolicy::kNever, worker = api::RestartPolicy::kNever;
  api::RestartScope chief_scope = api::RestartScope::kReplica, worker_scope = api::RestartScope::kReplica;
  // How many must be left where lost members are not replaced; nothing: all, so that the first loss is the
  // job's end.
  std::optional<int> least;
};
RingRules ring_rules(const api::TrainingJob& job);
LossPolicy ring_policy(const RingRules& rules);
// The policy of the job's strategy (docs/protocol.md). A ring forms the next view without a member that is
// replaced, or need not be. With servers a worker that nobody has to wait for is no loss.
LossPolicy loss_policy(const v1::TrainingSpec& training, const RingRules& ring);

// Its work is done: nobody waits for it.
struct FinishedMember {
  Role role = Role::kWorker;
  int index = 0;
};

// When shares of the global batch follow the members' speeds (core_shares.h).
struct RebalanceRules {
  double factor = 1.2;       // that a member is slow, at least
  double lost_seconds = 30;  // that the job has lost by then
  bool operator==(const RebalanceRules&) const = default;
};

// The check before the first step of a ring (core_preflight.h).
struct PreflightRules {
  double factor = 2;                // a member fails that takes more than so many times the others' median
  bool excludes = false;            // else it is told of, and trains
  int most = 0;                     // so many may be excluded
  std::vector<Role> replaced = {};  // whose members another pod follows while the others go on
};

struct CoreConfig {
  std::string job;  // namespace/name
  v1::TrainingSpec training;
  std::string link_key;  // 32 bytes
  std::vector<ExpectedRole> roles;
  std::int64_t attempt = 0;  // of the job: members of an earlier one are refused, of a later one put off
  std::vector<Incarnation> incarnations;    // the lowest that may attach, where it is not `attempt`
  std::optional<Incarnation> handover;      // see Handover
  std::vector<Incarnation> given_up;        // successors that were, and are not to take over any more
  std::optional<RebalanceRules> rebalance;  // of a ring; nothing: its shares are even
  std::vector<api::Straggler> stragglers;   // that the job's status tells of
  std::optional<PreflightRules> preflight;  // likewise; nothing: nobody is checked
  std::string save_request;                 // see Save
  // Fewer that train form no view of a ring. Elastic: a ring goes on without a member that leaves.
  int min_trainers = 1;
  bool elastic = false;
  Duration heartbeat_interval = std::chrono::milliseconds(200);
  Duration heartbeat_timeout = std::chrono::milliseconds(1500);  // more where all are late: core_silence.h
  Duration most_silence = std::chrono::seconds(6);  // where all are late, and while a view is formed
  Duration grace = std::chrono::milliseconds(300);
  // Where there are reports only, and more of them may acquit whom they are against: so long after the first.
  // The two ends of a link that is cut find it as far apart as its keep-alive is idle (5 s); a member waits
  // 10 s for the coordinator's word.
  Duration report_window = std::chrono::seconds(6);
  // Of a member of which nothing is known but that its stream has ended: where a network lies between, that
  // is no sign of death yet. No less than `grace`.
  Duration rejoin_grace{};
  Duration form_timeout = std::chrono::seconds(60);
  Duration start_timeout = std::chrono::seconds(60);  // a first view of all where fewer will do
  Duration stop_timeout =
      std::chrono::seconds(5);  // also: how long others may take to leave after rank 0 finished
  // Rank 0 that was told to stop may save for so long, whatever moves meanwhile: so long its process lives,
  // since who ends that (the kubelet: terminationGracePeriodSeconds) knows of no progress either.
  Duration save_timeout = std::chrono::seconds(310);
  bool same_machine = true;      // members' process ids mean something to people; else pods are named instead
  Duration reattach_limit{};     // how long members go on without a coordinator; zero: as they like
  std::vector<LostMember> lost;  // before this coordinator began: the others go on without them
  // Members have trained in a view of an earlier coordinator: a process of theirs that ends well while this
  // one gathers them has finished, and is not waited for. (Rank 0 may be saving the last checkpoint alone.)
  // Where it is rank 0's, the job has: whoever comes back later is told so.
  bool trained_before = false;
  // Members run our own program: a process of theirs that ends well has finished, whoever else knows of that.
  bool built_in = false;
  // Views that are formed here have higher generations than this one, the newest that the job's status tells
  // of. (A coordinator before this one may have formed another since; its members have another key for their
  // links.)
  Generation told_generation;
  // Those of them that are known to have finished, whatever becomes of their pods. Never rank 0, and no
  // server.
  std::vector<FinishedMember> finished;
  Goodput::Before goodput_before;     // of coordinators before this one
  std::optional<Step> restarts_from;  // all members begin anew: the step that had been reached
  LossPolicy on_member_lost = fail_on_loss;
  // Members run programs of their own, which tell of their steps or do not: nothing else is asked of them,
  // and nothing is decided (core_listener.h).
  bool listens = false;
};
// OK, or INVALID_ARGUMENT and what is wrong.
absl::Status validate(const CoreConfig& config);

// A pod ended, or is gone, says the cluster. Role and index say which member it was to be.
struct PodFact {
  Role role = Role::kWorker;
  int index = 0;
  std::string pod;
  std::optional<int> exit_code, signal;
  std::string words = {};  // the cluster's own, where they say more: "OOMKilled"
  bool deleted = false;    // somebody deleted it, and that is all that is known
  std::int64_t incarnation = 0;
};

// A member of a ring, or of an earlier coordinator's view, has not attached, and nobody waits for it any
// longer, though its pod runs as far as the cluster knows: its node may be dead.
using plan::AbsentMember;

struct Attached {
  StreamId stream;
  v1::Hello hello;
};  // the first message of a stream
struct Received {
  StreamId stream;
  v1::MemberMessage message;
};  // every later one
struct StreamEnded {
  StreamId stream;
  std::string reason;
};
// A stream that names this job, and a pod of it by its uid, has another token than the job: what comes from
// there will never be a member. Anybody may say so.
struct Refused {
  std::string pod_uid;
};
// The job is to have another size (the first is CoreConfig::roles). Only the workers of a ring may be others:
// those that come join at the end of a step, and those of the highest indices leave at the end of one, and
// are told that the job is finished for them.
struct Resize {
  std::vector<ExpectedRole> roles;
  LossPolicy on_member_lost = nullptr;  // at that size; null: the policy stays
};
// The member in a place of a ring is to be replaced while it trains, by the one with this number, or by one
// that stands by: whoever is ready first gets the state, and takes its rank at the end of a step; then it is
// evicted. (Report::handed_over.) Nothing: nobody is, and a successor that is under way is sent away.
struct Handover {
  std::optional<Incarnation> to;
};
// The job's rules are others now.
struct Rebalance {
  std::optional<RebalanceRules> rules;
};
// Rank 0 is to save a checkpoint after the step under way (Report::save_answer). Another text is another
// request; empty: none is any more.
struct Save {
  std::string request;
};
struct Tick {};
// Members leave in order. Where another attempt follows, observers stay attached until they find it.
struct Stop {
  std::string reason;
  bool another_follows = false;
};
using Input = std::variant<Attached, Received, StreamEnded, PodFact, AbsentMember, Refused, Resize, Handover,
                           Rebalance, Save, Tick, Stop>;

struct Send {
  StreamId stream;
  v1::CoordinatorMessage message;
};

// What the shell must do, in this order: send, close, tell observers. A batch is carried out before the next
// one.
struct Effects {
  std::vector<Send> send;
  std::vector<StreamId> close;  // after what is sent to them
  std::optional<ViewRecord> view;
  std::optional<api::ViewChange> view_change;
  std::vector<StragglerChange> stragglers;
  std::optional<api::Rebalance> rebalance;
  std::optional<api::Preflight> preflight;
  std::vector<StepRecord> steps;
  std::vector<MemberSteps> member_steps;
  std::vector<EvaluationRecord> evaluations;
  std::vector<CheckpointRecord> checkpoints;
  std::optional<api::Fault> verdict;
  std::vector<api::Fault> lost;      // the job goes on without these members
  std::vector<std::string> reasons;  // every decision in one line
  bool report_changed = false;
};

class Listener;

class CoordinatorCore {
 public:
  // REQUIRES: validate(config) is OK. The job's time begins now.
  CoordinatorCore(CoreConfig config, TimePoint now);
  ~CoordinatorCore();
  CoordinatorCore(CoordinatorCore&&) noexcept;
  CoordinatorCore& operator=(CoordinatorCore&&) noexcept;

  Effects step(const Input& input, TimePoint now);
  Report report(TimePoint now) const;
  JobState state() const;
  bool is_observer(StreamId stream) const;
  // The first moment at which a Tick may have an effect, if no other input comes before; a Tick before it has
  // none.
  TimePoint due() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
  std::unique_ptr<Listener> listener_;  // one of the two is there
};

}  // namespace paceline::coordinator
