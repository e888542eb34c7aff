#include "runtime/trainer/progress_file_store.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace paceline::trainer {

namespace {

class MovingWriter final : public checkpoint::FileWriter {
 public:
  MovingWriter(std::unique_ptr<checkpoint::FileWriter> file, StopRequest& stop)
      : file_(std::move(file)), stop_(stop) {}
  absl::Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const std::size_t next = std::min(bytes.size(), ProgressFileStore::kPieceBytes);
      PL_RETURN_IF_ERROR(file_->append(bytes.first(next)));
      stop_.moved();
      bytes = bytes.subspan(next);
    }
    return absl::OkStatus();
  }
  absl::Status finish() override {
    const absl::Status finished = file_->finish();
    stop_.moved();
    return finished;
  }

 private:
  const std::unique_ptr<checkpoint::FileWriter> file_;
  StopRequest& stop_;
};

}  // namespace

ProgressFileStore::ProgressFileStore(checkpoint::FileStore* files, StopRequest& stop)
    : own_files_(files == nullptr ? checkpoint::make_directory_store() : nullptr),
      files_(files == nullptr ? *own_files_ : *files),
      stop_(stop) {}

absl::StatusOr<std::unique_ptr<checkpoint::FileWriter>> ProgressFileStore::create_file(
    const std::string& path) {
  PL_ASSIGN_OR_RETURN(auto file, files_.create_file(path));
  return std::make_unique<MovingWriter>(std::move(file), stop_);
}

absl::Status ProgressFileStore::write_file(const std::string& path,
                                           std::span<const std::span<const std::byte>> pieces) {
  PL_ASSIGN_OR_RETURN(const auto writer, create_file(path));
  for (const auto& piece : pieces) PL_RETURN_IF_ERROR(writer->append(piece));
  return writer->finish();
}

}  // namespace paceline::trainer
