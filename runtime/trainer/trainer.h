#pragma once

// A member's whole training: the shell around StepMachine. It waits for views, connects, trains, evaluates,
// saves, and says goodbye.
//
// run() is called once, by the training thread. What it was given outlives it. From other threads only the
// membership's cancel hook and StopRequest reach it; they close the communicator, interrupt the servers'
// client, or cancel their making, which ends any wait for a peer within a millisecond; reading a checkpoint
// ends with the next MiB; else reading, computing and saving are not interrupted. After the first step of a
// view nothing is allocated but for evaluations, checkpoints and log lines.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/membership.h"
#include "runtime/member/step_clock.h"
#include "runtime/pserver/client.h"
#include "runtime/trainer/catch_ups.h"
#include "runtime/trainer/device_saver.h"
#include "runtime/trainer/member_devices.h"
#include "runtime/trainer/outcome.h"
#include "runtime/trainer/partial_steps.h"
#include "runtime/trainer/preflight.h"
#include "runtime/trainer/programs.h"
#include "runtime/trainer/progress_file_store.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/server_state.h"
#include "runtime/trainer/session.h"
#include "runtime/trainer/sparse_rows.h"
#include "runtime/trainer/state_source.h"
#include "runtime/trainer/step_machine.h"
#include "runtime/trainer/stop_request.h"
#include "runtime/trainer/view_group.h"
#include "runtime/trainer/view_links.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

struct TrainerOptions {
  // The weights are hashed every so many steps, and at evaluations, checkpoints and the end. 16 keeps the
  // cost below 0.1 % of a step; 1 is for tests.
  Step hash_every = 16;
  // Hears every hash, in the training thread; may be null.
  std::function<void(Step step, std::uint64_t hash)> on_hash;
};

// pserver::Client::connect(), or a test's.
using ConnectServers = std::function<absl::StatusOr<std::unique_ptr<pserver::Client>>(
    collective::Fabric& fabric, const collective::Group& group, const pserver::ClientOptions& options,
    const tensor::ParameterLayout& layout, std::span<float> weights, std::span<float> gradient,
    const Clock& clock, Deadline deadline)>;

struct TrainerParts {
  member::Membership& membership;
  collective::Fabric& fabric;
  const Clock& clock;
  const Logger& logger;
  StopRequest& stop;
  OpenWorkload open_workload;
  ConnectServers connect_servers;          // null: this program knows no parameter servers
  checkpoint::FileStore* files = nullptr;  // where checkpoints and the model are; null: this machine's
};

class Trainer {
 public:
  explicit Trainer(TrainerParts parts, TrainerOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Outcome run();

 private:
  Decision carry_out(Todo todo);
  Decision prepare();
  Decision wait_for_view();
  Decision align();
  Decision step();
  Decision evaluate();
  Decision save_checkpoint();
  Decision write_model();
  Decision report_fault();
  // Into a view; without one the membership ended, somebody asked to stop, or `late`.
  Decision enter(absl::StatusOr<v1::View> view, const std::string& late);
  Decision stand_by();
  Decision leave();
  Decision on_error(const absl::Status& status);
  Decision fail(const absl::Status& error);

  absl::Status open_workload();
  absl::Status make_replica(const tensor::Program& program);
  absl::Status check_target(const StepPlan& plan);
  absl::Status go_on() const;
  Decision gave_up(const absl::Status& found, bool configuration);
  absl::Status connect();
  void tell_of_links(const std::shared_ptr<collective::Communicator>& communicator);
  absl::Status find_source();
  absl::Status resume();
  // Rank 0, while it reads what the members begin with, and when it has.
  absl::Status report_loading(bool still);
  absl::Status wait_for_load();  // the others, with all-reduce: until it has
  // ... and then all have the same, where they train it: by what gradients go from device to device, null:
  // by the hosts.
  absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> share_state();
  checkpoint::CheckpointStore checkpoints();
  absl::Status open_ring_session();
  absl::Status compile_for(std::span<const std::int64_t> rows);
  // Why not all members' states are trained on their devices, and why these can't exchange gradients by
  // themselves; empty: they can.
  struct Placing {
    std::string why_on_hosts, why_by_hosts;
  };
  absl::StatusOr<Placing> survey_devices();
  absl::Status place_state(const Placing& placing);
  absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> open_device_exchange(
      const std::string& why_not);
  absl::StatusOr<exchange::DeviceExchange> try_device_exchange(optimizer::DeviceState& device,
                                                               Deadline deadline);
  absl::StatusOr<NotOpened> agree_on_opening(const absl::Status& opened, Deadline deadline);

  absl::Status place_on_device();
  // Rank 0: whether the checkpoint that is due now may be written while training goes on; and the end of one
  // that is, before its memory is needed.
  bool saves_beside_training() const;
  void settle_save();

  // trainer_servers.cc
  absl::Status connect_servers();
  absl::Status initialize_servers();
  absl::Status open_server_session();
  Decision save_from_servers();
  absl::Status take_state_from_servers();
  void report_saved(const SaveOutcome& saved);
  enum class Turns : std::uint8_t { kTaken, kOver };
  void adopt_servers(Turns turns);
  // Whether this worker, when it is asked to stop, leaves without asking the others to.
  bool may_leave_alone() const;
  absl::Status open_tables();
  absl::StatusOr<std::string> write_model_files();

  absl::StatusOr<v1::View> next_view(Duration limit);
  void answer(const v1::Preflight& word);
  void report_step(const StepResult& result);
  void report_threshold(const std::optional<PartialSteps::Threshold>& threshold);
  enum class HashTelling : std::uint8_t { kAlways, kIfRounder };  // Progress: set, or offer
  void report_hash(HashTelling telling = HashTelling::kAlways);
  // How many train in all-reduce when nobody is missing; 0: servers.
  std::int64_t trainers() const {
    return servers_ ? 0 : std::max<std::int64_t>(view_.trainers(), view_.members_size());
  }
  // Whether a ring forms its next view without a member that leaves.
  bool others_go_on() const {
    return !servers_ && group_.members.size() > 1 && parts_.membership.welcome().elastic();
  }
  // Steps that the job has applied, as far as this member knows.
  Step reached() const { return std::max(machine_.step(), server_state_.collected_step()); }
  TimePoint now() const { return parts_.clock.now(); }

  const TrainerParts parts_;
  ProgressFileStore files_;
  const TrainerOptions options_;
  const v1::TrainingSpec& spec_;
  const bool servers_;       // parameter servers
  const bool tells_hashes_;  // all members hold the same weights after the same step
  const std::vector<pserver::sparse::TableSpec> tables_;  // sparse ones, of the model
  StepMachine machine_;
  Outcome outcome_;
  absl::Status fault_;  // why the step under way was abandoned

  Workload workload_;
  std::unique_ptr<Replica> replica_;  // before the programs that are bound to it
  Programs programs_;
  std::unique_ptr<SparseRows> rows_;  // of a unit's samples; null: the model has no tables

  // Of the current view.
  v1::View view_;
  collective::Group group_;
  std::shared_ptr<collective::Communicator> communicator_;
  std::optional<Source> source_;               // of the state that a view begins with
  std::shared_ptr<pserver::Client> client_;    // with parameter servers, in place of the communicator
  ServerState server_state_;                   // in rank 0; goes before what it uses
  std::unique_ptr<DeviceSaver> device_saver_;  // of a state on the device, in rank 0
  std::unique_ptr<Session> session_;
  CatchUps catch_ups_;                    // goes before the replica
  std::shared_ptr<Preflight> preflight_;  // until there is a view
  std::optional<bool> leaves_out_;        // samples, by the threshold that was chosen last
  Agreement agreed_;                      // of the last step

  member::StepClock step_clock_;
  std::int64_t saving_ns_ = 0;  // checkpoint time that the next step reports
  std::uint64_t bytes_sent_ = 0;
  Step hashed_step_ = -1;
  bool aligned_ = false;                  // the members have held one state
  std::optional<TimePoint> left_view_;    // the last step, or wait, of the view before; until a step
  TimePoint viewed_at_{}, aligned_at_{};  // of the present view
  bool begins_view_ = false;              // it has taken no step in it
  bool stepped_ = false;
  std::uint64_t saves_asked_ = 0;  // of the membership's, that the machine knows of
  bool lack_told_ = false;         // that it has no NCCL, where that is all that gradients lack
  TimePoint started_{}, training_since_{};

  ViewLinks links_;  // last: its hooks use all of the above
};

}  // namespace paceline::trainer
