#pragma once

// The thread that makes all calls of one NCCL communicator, and what it shares with those who wait for it
// (communicator.h tells why). Made by NcclCommunicator::create.
//
// Threads: run() is the thread's. post(), wait() and join() are called by one thread at a time, the rest by
// any. Held by its thread, too: where that is given up inside a call of NCCL, all of it stays.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/guarded.h"
#include "runtime/collective/arguments.h"
#include "runtime/collective/closing.h"
#include "runtime/nccl/agreement.h"
#include "runtime/nccl/communicator.h"

namespace paceline::nccl {

class Service {
 public:
  static absl::StatusOr<std::shared_ptr<Service>> make(Setup setup, const Clock& clock, Deadline opening);

  // Before run(): how it is made, and the parent's handle where it is shrunk from one. It owns that.
  void begin_from(Origin origin, ncclComm_t parent);
  // Of the communicator's life, to its end.
  void run();

  absl::Status wait_until_open();
  absl::StatusOr<std::uint64_t> post(const collective::Call& call, cuda::Stream* after, Deadline deadline);
  absl::Status wait(std::uint64_t number, Deadline deadline);
  absl::Status join(cuda::Stream& stream, Deadline deadline);
  // The same for an operation whose own deadline that is: its end is told by the thread, unless it is stuck.
  absl::Status wait_for_end(std::uint64_t number, Deadline deadline);

  void close(absl::Status reason);
  absl::Status closed();
  collective::Counters counters() const;
  State state() { return shared_.lock()->state; }
  int rank() const { return rank_; }
  int world_size() const { return world_; }
  Generation generation() const { return generation_; }
  std::string origin();

  // The owner goes. True when run() ends by itself in time; else it is given up, and its thread must not be
  // joined.
  bool end();
  // The same of keep(): true where it is kept, or has ended.
  bool keep();
  bool may_be_kept() const { return keeping_ != Keeping::kNever; }
  std::optional<Parent> offer();
  ncclComm_t hand_over();

 private:
  // Until a communicator that nobody uses is looked at.
  static constexpr std::chrono::milliseconds kIdle{100};

  struct Operation {
    Operation(cuda::Event before, cuda::Event behind) : ready(std::move(before)), done(std::move(behind)) {}
    collective::Call call;
    std::uint64_t number = 0;
    Deadline deadline{TimePoint{}};
    bool after = false;  // begins after `ready`
    TimePoint begun{};
    cuda::Event ready, done;
  };
  struct Shared {
    State state = State::kInit;
    std::uint64_t posted = 0, begun = 0, done = 0;  // the last operation of which that is true
    bool let_go = false, given_up = false, ended = false;
    bool ending = false;                 // let go for good
    bool with_parent = false;            // that, too, is aborted at its end
    bool stays = false;                  // kept, and nothing of its view is left
    bool offered = false;                // to the next view's
    std::optional<Deadline> release_by;  // of an ncclCommAbort under way
    std::optional<Deadline> kept_until;
    Origin origin;
  };

  Service(Setup setup, const Clock& clock, Deadline opening, cuda::Stream stream,
          std::vector<Operation> operations);

  Operation& operation(std::uint64_t number) { return operations_[number % operations_.size()]; }
  absl::Status fail(absl::Status status);
  absl::Status host_closed();
  absl::Status interrupted();
  void let_go(bool for_good);
  template <typename Condition>
  absl::Status await(Condition condition, Deadline deadline, const char* what);
  template <typename Condition>
  bool give_up_unless(Condition condition, Deadline deadline);

  // The thread's.
  Decision step(Event event, ncclResult_t result = ncclSuccess);
  // A call of NCCL. After it, given_up_ is looked at before anything that is not this object's own.
  template <typename Function>
  ncclResult_t nccl(const char* name, Function function) {
    calling_ = name;
    const ncclResult_t result = function();
    calling_ = nullptr;
    given_up_ = shared_.lock()->given_up;
    return result;
  }
  static absl::Status given_up_status();
  ncclResult_t ask(ncclComm_t about);
  absl::Status settle(ncclResult_t result, const char* call, ncclComm_t about, Deadline deadline);
  absl::Status open();
  absl::Status init();
  absl::StatusOr<bool> shrink();
  void turn();
  void part(absl::Status why);
  absl::Status poll(Operation& operation, bool& reached);
  void count(Operation& operation);
  absl::Status begin(Operation& operation);
  ncclResult_t issue(const collective::Call& call, const char*& name);
  ncclResult_t issue_blocks(const collective::Call& call, const char*& name);
  void revoke();
  void leave_view();
  void stay();
  void release();
  void abort(ncclComm_t& communicator);

  // Constant.
  const std::shared_ptr<const Library> library_;
  const std::shared_ptr<const cuda::Context> context_;
  const Clock& clock_;
  const Logger log_;
  const Limits limits_;
  const Deadline opening_;
  const Keeping keeping_;
  const int rank_, world_;
  const Generation generation_;

  Guarded<std::shared_ptr<collective::Communicator>> host_;  // until it leaves its view
  collective::Closing closing_;
  Guarded<Shared> shared_;
  std::atomic<const char*> calling_{nullptr};  // the call of NCCL that the thread is in
  std::atomic<std::uint64_t> bytes_{0}, finished_{0};
  std::atomic<std::int64_t> wait_ns_{0}, transfer_ns_{0};

  // The thread's; an operation is the poster's until it is posted.
  std::optional<cuda::Stream> stream_;  // and the operations: until it is let go and has ended
  std::vector<Operation> operations_;
  Agreement agreement_;
  ncclComm_t comm_ = nullptr, parent_ = nullptr;
  int asked_ = 0;
  bool unsettled_ = false;  // the last call has not come to a good end, and may be at work
  bool given_up_ = false;
};

}  // namespace paceline::nccl
