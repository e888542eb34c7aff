#pragma once

// Checkpoints of what parameter servers hold, for worker 0: collected from them and written in a thread of
// its own while training goes on, or before the job ends, while its owner waits.
//
// One thread owns it; the client's memory is not touched. The memory for one state is taken at the first one.
// Errors of collecting are the client's, those of writing the store's. Rows of sparse tables go into files as
// they come, batch by batch: collecting has both kinds of errors then, but UNAVAILABLE is a server's alone
// (storage's is INTERNAL).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/pserver/client.h"
#include "runtime/trainer/progress_file_store.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/save_outcome.h"
#include "runtime/trainer/stop_request.h"
#include "runtime/trainer/table_parts.h"

namespace paceline::trainer {

class ServerSaver {
 public:
  // All outlive it. The optimizer of `replica` is there, and its state is the memory of what is collected.
  // `files`: where checkpoints and the model are; they say what moves there.
  ServerSaver(const v1::TrainingSpec& spec, const Clock& clock, Replica& replica, StopRequest& stop,
              ProgressFileStore& files);
  ~ServerSaver();  // waits for the one under way
  ServerSaver(const ServerSaver&) = delete;
  ServerSaver& operator=(const ServerSaver&) = delete;

  bool busy() const { return busy_; }
  // Begins one, `step` being where this worker is: what came of it says so where nothing is taken. REQUIRES:
  // not busy.
  void begin(std::shared_ptr<pserver::Client> client, std::int64_t step);
  // What came of the one under way, once it is done, or now where nothing else is to be done: then it waits.
  std::optional<SaveOutcome> poll();
  std::optional<SaveOutcome> wait();

  // Collects the servers' present state and waits for it, as long as some of it comes within `limit`:
  // collected() and position() are it then. REQUIRES: not busy; where there are tables: a place for
  // checkpoints, and write() follows.
  absl::Status collect(pserver::Client& client, Duration limit);
  // Writes what was collected.
  SaveOutcome write();
  // The rows of the checkpoint that write() has just written: they are not read before they are asked for.
  absl::StatusOr<std::unique_ptr<TablePartsReader>> written_rows() const;
  // The servers' present state into `folder`, as the final model with its tables (model_files.h); its path.
  // REQUIRES: not busy.
  absl::StatusOr<std::string> write_model(pserver::Client& client, const std::string& folder, Duration limit);
  std::span<const float> collected() const { return weights_; }
  const StatePosition& position() const { return position_; }

 private:
  absl::Status take(pserver::Client& client, Duration limit);
  absl::Status take_dense(pserver::Client& client, Duration limit);
  absl::StatusOr<std::vector<checkpoint::FileEntry>> take_parts(pserver::Client& client, Duration limit);
  Deadline from_now(Duration limit) const { return Deadline::after(clock_.now(), limit); }
  absl::Status save();

  const Clock& clock_;
  Replica& replica_;
  StopRequest& stop_;
  ProgressFileStore& files_;
  const std::vector<pserver::sparse::TableSpec> tables_;
  // The thread's while it is busy, else the owner's.
  checkpoint::CheckpointStore store_;
  std::unique_ptr<checkpoint::CheckpointWriter> writer_;  // with tables: from their first row to save()
  std::vector<checkpoint::FileEntry> parts_;              // of it
  std::vector<float> weights_;
  StatePosition position_;
  std::uint64_t bytes_ = 0;
  TimePoint began_{};

  bool busy_ = false;
  Guarded<std::optional<SaveOutcome>> done_;
  std::jthread thread_;
};

}  // namespace paceline::trainer
