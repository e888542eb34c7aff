#pragma once

// Files that tell a StopRequest of every piece that was written, so that who waits for a checkpoint, however
// large its state and slow its storage, sees that it goes on: what takes its time is appending, of this
// machine's files too (file_store.h). As thread-safe as what they are made of.

#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/file_store.h"
#include "runtime/trainer/stop_request.h"

namespace paceline::trainer {

class ProgressFileStore final : public checkpoint::FileStore {
 public:
  // Both outlive it and its writers. `files`: null for this machine's.
  ProgressFileStore(checkpoint::FileStore* files, StopRequest& stop);

  absl::Status make_folder(const std::string& path) override { return files_.make_folder(path); }
  absl::Status write_file(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) override;
  absl::StatusOr<std::unique_ptr<checkpoint::FileWriter>> create_file(const std::string& path) override;
  absl::Status sync_folder(const std::string& path) override { return files_.sync_folder(path); }
  absl::Status rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  absl::Status remove(const std::string& path) override { return files_.remove(path); }
  absl::StatusOr<std::vector<std::string>> list(const std::string& path) const override {
    return files_.list(path);
  }
  absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path,
                                                   std::uint64_t limit) const override {
    return files_.read_file(path, limit);
  }
  absl::StatusOr<std::unique_ptr<checkpoint::FileReader>> open_file(const std::string& path) const override {
    return files_.open_file(path);
  }

  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // at most, between two words

 private:
  const std::unique_ptr<checkpoint::FileStore> own_files_;
  checkpoint::FileStore& files_;
  StopRequest& stop_;
};

}  // namespace paceline::trainer
