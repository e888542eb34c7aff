#include "runtime/trainer/server_saver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/vector_hash.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/model_files.h"
#include "runtime/trainer/table_specs.h"

namespace paceline::trainer {

ServerSaver::ServerSaver(const v1::TrainingSpec& spec, const Clock& clock, Replica& replica,
                         StopRequest& stop, ProgressFileStore& files)
    : clock_(clock),
      replica_(replica),
      stop_(stop),
      files_(files),
      tables_(table_specs(spec)),
      store_(files, spec.checkpoint().directory(), std::max<std::int64_t>(1, spec.checkpoint().keep())) {}

ServerSaver::~ServerSaver() {
  if (thread_.joinable()) thread_.join();
}

void ServerSaver::begin(std::shared_ptr<pserver::Client> client, std::int64_t step) {
  PL_CHECK(!busy_, "one checkpoint at a time");
  began_ = clock_.now();
  busy_ = true;
  const absl::Status begun = client->begin_snapshot();
  if (!begun.ok()) {
    *done_.lock() = SaveOutcome{begun, step, 0, {}, {}};
    return;
  }
  if (thread_.joinable()) thread_.join();  // it has said what came of it
  thread_ = std::jthread([this, step, client = std::move(client)] {
    const StopRequest::Saving saving(stop_);
    absl::Status status = take(*client, kSaveLimit);
    const std::int64_t taken = status.ok() ? position_.step : step;
    if (status.ok()) status = save();
    *done_.lock() = SaveOutcome{std::move(status), taken, bytes_, clock_.now() - began_, {}};
  });
}

std::optional<SaveOutcome> ServerSaver::poll() {
  if (!busy_) return std::nullopt;
  auto done = std::exchange(*done_.lock(), std::nullopt);
  busy_ = !done.has_value();
  return done;
}

std::optional<SaveOutcome> ServerSaver::wait() {
  if (!busy_) return std::nullopt;
  const TimePoint from = clock_.now();
  if (thread_.joinable()) thread_.join();  // ends with the client, or at the limits of collecting
  auto done = poll();
  if (done.has_value()) done->stall = clock_.now() - from;
  return done;
}

absl::Status ServerSaver::collect(pserver::Client& client, Duration limit) {
  PL_CHECK(!busy_, "one checkpoint at a time");
  began_ = clock_.now();
  PL_RETURN_IF_ERROR(client.begin_snapshot());
  PL_RETURN_IF_ERROR(client.flush(from_now(limit)));
  return take(client, limit);
}

absl::Status ServerSaver::take(pserver::Client& client, Duration limit) {
  PL_RETURN_IF_ERROR(take_dense(client, limit));
  if (tables_.empty()) return absl::OkStatus();
  writer_.reset();  // one that could not be finished
  auto parts = take_parts(client, limit);
  if (parts.ok()) {
    parts_ = *std::move(parts);
  } else {
    writer_.reset();
  }
  return parts.status();
}

absl::Status ServerSaver::take_dense(pserver::Client& client, Duration limit) {
  weights_.resize(replica_.layout().elements);
  std::vector<std::span<float>> optimizer;
  for (const optimizer::StateVector& state : replica_.optimizer_state()) optimizer.push_back(state.values);
  PL_ASSIGN_OR_RETURN(const pserver::SnapshotInfo info,
                      client.take_snapshot(weights_, optimizer, from_now(limit), [this] { stop_.moved(); }));
  position_ = {info.step, info.optimizer_steps, info.units};
  return absl::OkStatus();
}

namespace {

// Storage that fails is no peer that does.
absl::Status of_storage(const absl::Status& status) {
  return absl::IsUnavailable(status) ? absl::InternalError(std::string(status.message())) : status;
}

// Says of every batch of rows that the save goes on.
class MovingRows final : public pserver::sparse::RowSink {
 public:
  MovingRows(pserver::sparse::RowSink& rows, StopRequest& stop) : rows_(rows), stop_(stop) {}
  absl::Status begin(int table, int server, std::uint64_t rows, std::int64_t clock) override {
    return rows_.begin(table, server, rows, clock);
  }
  absl::Status add(int table, int server, const pserver::sparse::SavedRows& rows) override {
    stop_.moved();
    return of_storage(rows_.add(table, server, rows));
  }

 private:
  pserver::sparse::RowSink& rows_;
  StopRequest& stop_;
};

}  // namespace

// The servers keep their copies until the rows are taken, or refused: the checkpoint is begun when they come.
absl::StatusOr<std::vector<checkpoint::FileEntry>> ServerSaver::take_parts(pserver::Client& client,
                                                                           Duration limit) {
  TablePartsWriter rows(
      tables_, TableContents::kAll,
      [this](const std::string& name) -> absl::StatusOr<std::unique_ptr<checkpoint::PartWriter>> {
        if (writer_ == nullptr) {
          PL_ASSIGN_OR_RETURN(writer_, store_.begin());
        }
        return writer_->begin_part(name);
      });
  MovingRows moving(rows, stop_);
  PL_RETURN_IF_ERROR(client.take_rows(moving, from_now(limit)));
  auto parts = rows.finish();
  if (!parts.ok()) return of_storage(parts.status());
  return parts;
}

absl::Status ServerSaver::save() {
  const NamedState state = replica_.format().name({weights_, replica_.optimizer_state()}, position_);
  bytes_ = 0;
  for (const auto& tensor : state.snapshot.tensors) bytes_ += tensor.data.size();
  if (tables_.empty()) return store_.save(state.snapshot);
  PL_CHECK(writer_ != nullptr, "rows are collected before they are saved");
  for (const checkpoint::FileEntry& part : parts_) bytes_ += part.bytes;
  const auto writer = std::move(writer_);
  return writer->finish(state.snapshot, parts_);
}

SaveOutcome ServerSaver::write() {
  SaveOutcome outcome;
  outcome.status = save();
  outcome.step = position_.step;
  outcome.bytes = bytes_;
  outcome.took = outcome.stall = clock_.now() - began_;
  return outcome;
}

absl::StatusOr<std::unique_ptr<TablePartsReader>> ServerSaver::written_rows() const {
  return TablePartsReader::open(store_, checkpoint::checkpoint_name(position_.step), parts_, tables_);
}

absl::StatusOr<std::string> ServerSaver::write_model(pserver::Client& client, const std::string& folder,
                                                     Duration limit) {
  PL_CHECK(!busy_, "one state at a time");
  PL_RETURN_IF_ERROR(client.begin_snapshot());
  PL_RETURN_IF_ERROR(client.flush(from_now(limit)));
  PL_RETURN_IF_ERROR(take_dense(client, limit));
  return write_model_files(files_, folder, {position_.step, vector_hash(weights_)},
                           replica_.model_tensors(weights_), tables_, [&](pserver::sparse::RowSink& rows) {
                             MovingRows moving(rows, stop_);
                             return client.take_rows(moving, from_now(limit));
                           });
}

}  // namespace paceline::trainer
