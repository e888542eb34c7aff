#pragma once

// This machine's files, with something that happens before each of them is read, or made: storage that takes
// its time, or fails.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/checkpoint/file_store.h"

namespace paceline {

class SlowFiles final : public checkpoint::FileStore {
 public:
  // Called with the path before a file is opened for reading, in the thread that reads it.
  explicit SlowFiles(std::function<void(const std::string& path)> before_read)
      : before_read_(std::move(before_read)) {}
  SlowFiles() : SlowFiles([](const std::string&) {}) {}

  // Called with the path before a file is made; its error is what comes of that. May be null.
  std::function<absl::Status(const std::string& path)> before_create;
  // Likewise of a folder whose names are asked for.
  std::function<absl::Status(const std::string& path)> before_list;
  // Likewise of a file that is opened for reading.
  std::function<absl::Status(const std::string& path)> before_open;

  absl::Status make_folder(const std::string& path) override { return files_->make_folder(path); }
  absl::Status write_file(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) override {
    if (before_create != nullptr) PL_RETURN_IF_ERROR(before_create(path));
    return files_->write_file(path, pieces);
  }
  absl::StatusOr<std::unique_ptr<checkpoint::FileWriter>> create_file(const std::string& path) override {
    if (before_create != nullptr) PL_RETURN_IF_ERROR(before_create(path));
    return files_->create_file(path);
  }
  absl::Status sync_folder(const std::string& path) override { return files_->sync_folder(path); }
  absl::Status rename(const std::string& from, const std::string& to) override {
    return files_->rename(from, to);
  }
  absl::Status remove(const std::string& path) override { return files_->remove(path); }
  absl::StatusOr<std::vector<std::string>> list(const std::string& path) const override {
    if (before_list != nullptr) PL_RETURN_IF_ERROR(before_list(path));
    return files_->list(path);
  }
  absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path,
                                                   std::uint64_t limit) const override {
    before_read_(path);
    if (before_open != nullptr) PL_RETURN_IF_ERROR(before_open(path));
    return files_->read_file(path, limit);
  }
  absl::StatusOr<std::unique_ptr<checkpoint::FileReader>> open_file(const std::string& path) const override {
    before_read_(path);
    if (before_open != nullptr) PL_RETURN_IF_ERROR(before_open(path));
    return files_->open_file(path);
  }

 private:
  const std::unique_ptr<checkpoint::FileStore> files_ = checkpoint::make_directory_store();
  const std::function<void(const std::string&)> before_read_;
};

}  // namespace paceline
