#pragma once

// A file store that crashes. It keeps two states: what processes see, and what a disk would hold after a
// power cut, where only synced content and synced names are sure to be. Faults: fail from the n-th operation
// on (a crash: nothing has an effect any more), with the n-th write torn after some bytes; a full disk. What
// a writer appends is not on the disk before its finish(). One thread.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "base/rng.h"
#include "base/status.h"
#include "runtime/checkpoint/file_store.h"

namespace paceline::checkpoint {

class MemoryFileStore final : public FileStore {
 public:
  // Operations that change something, so far.
  std::int64_t operations() const { return operations_; }
  // Operation number `n` (from now, 0 is the next) and all after it fail; if it is a write, `torn_bytes` of
  // its content are left, and of what it removes as many files are gone.
  void crash_at(std::int64_t n, std::uint64_t torn_bytes) {
    crash_at_ = operations_ + n;
    torn_bytes_ = torn_bytes;
  }
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }

  // What a machine finds that was cut off now. Names that were changed and not synced may have reached the
  // disk or not: `rng` decides for each folder how many of its latest changes did, in order, as a journal
  // keeps them.
  std::unique_ptr<MemoryFileStore> after_power_cut(Rng& rng) const {
    auto store = std::make_unique<MemoryFileStore>();
    store->files_ = synced_;
    store->folders_ = synced_folders_;
    const std::uint64_t kept = rng.below(pending_.size() + 1);
    for (std::uint64_t i = 0; i < kept; ++i) apply(pending_[i], store->files_, store->folders_);
    for (const auto& [path, content] : store->files_) add_folders(path, store->folders_);
    store->settle();
    return store;
  }
  // What another process finds when this one was killed.
  std::unique_ptr<MemoryFileStore> after_kill() const {
    auto store = std::make_unique<MemoryFileStore>();
    store->files_ = files_;
    store->folders_ = folders_;
    store->settle();
    return store;
  }
  // Everything becomes durable, as on an idle machine after a while.
  void settle() {
    synced_ = files_;
    synced_folders_ = folders_;
    pending_.clear();
  }
  std::map<std::string, std::string>& files() { return files_; }
  // Of this file or folder nothing can be read, for that reason.
  void deny(const std::string& path, absl::Status why = absl::PermissionDeniedError("not yours")) {
    denied_ = path;
    why_ = std::move(why);
  }

  absl::Status make_folder(const std::string& path) override {
    PL_RETURN_IF_ERROR(begin());
    add_folders(path + "/", folders_);
    add_folders(path + "/", synced_folders_);
    return absl::OkStatus();
  }
  absl::Status write_file(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) override {
    std::string content;
    for (const auto& piece : pieces)
      content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    const bool crashing = operations_ == crash_at_;
    absl::Status status = begin();
    if (!status.ok() && crashing) content.resize(std::min<std::uint64_t>(content.size(), torn_bytes_));
    if (!status.ok() && !crashing) return status;
    if (!folders_.contains(path.substr(0, path.rfind('/')))) return absl::NotFoundError(path);
    std::uint64_t used = content.size();
    for (const auto& [name, other] : files_) used += name == path ? 0 : other.size();
    if (used > capacity_) {
      content.resize(content.size() - std::min<std::uint64_t>(used - capacity_, content.size()));
      status = absl::ResourceExhaustedError("the disk is full");
    }
    change({Change::kWrite, path, content});
    return status;
  }
  absl::StatusOr<std::unique_ptr<FileWriter>> create_file(const std::string& path) override {
    PL_RETURN_IF_ERROR(begin());
    if (!folders_.contains(path.substr(0, path.rfind('/')))) return absl::NotFoundError(path);
    change({Change::kWrite, path});
    return std::make_unique<Writer>(*this, path);
  }
  absl::Status sync_folder(const std::string& path) override {
    PL_RETURN_IF_ERROR(begin());
    // Only the names of this folder itself are sure now; what is pending inside a folder that got a new name
    // stays so.
    std::vector<Change> later;
    for (const Change& change : pending_) {
      if (parent(change.path) == path || parent(change.to) == path) {
        apply(change, synced_, synced_folders_);
        for (Change& other : later) {
          if (change.kind == Change::kRename && inside(other.path, change.path)) {
            other.path = change.to + other.path.substr(change.path.size());
          }
        }
      } else {
        later.push_back(change);
      }
    }
    pending_ = std::move(later);
    return absl::OkStatus();
  }
  absl::Status rename(const std::string& from, const std::string& to) override {
    PL_RETURN_IF_ERROR(begin());
    if (!exists(from)) return absl::NotFoundError(from);
    if (folders_.contains(to)) return absl::AlreadyExistsError(to);
    change({Change::kRename, from, "", to});
    return absl::OkStatus();
  }
  absl::Status remove(const std::string& path) override {
    const bool crashing = operations_ == crash_at_;
    const absl::Status status = begin();
    if (!status.ok() && !crashing) return status;
    if (!status.ok()) {  // in the middle
      std::vector<std::string> gone;
      for (const auto& [file, content] : files_) {
        if (inside(file, path) && gone.size() < torn_bytes_) gone.push_back(file);
      }
      for (const std::string& file : gone) change({Change::kRemove, file});
      return status;
    }
    if (exists(path)) change({Change::kRemove, path});
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> list(const std::string& path) const override {
    if (!folders_.contains(path)) return absl::NotFoundError(path);
    if (path == denied_) return with_context(why_, path);
    std::set<std::string> names;
    const auto add = [&](const std::string& name) {
      if (!name.starts_with(path + "/")) return;
      const std::string rest = name.substr(path.size() + 1);
      names.insert(rest.substr(0, rest.find('/')));
    };
    for (const auto& [name, content] : files_) add(name);
    for (const auto& folder : folders_) add(folder);
    return std::vector<std::string>(names.begin(), names.end());
  }
  absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path,
                                                   std::uint64_t limit) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return absl::NotFoundError(path);
    if (path == denied_) return with_context(why_, path);
    if (found->second.size() > limit) return absl::FailedPreconditionError(path);
    const auto* data = reinterpret_cast<const std::byte*>(found->second.data());
    return std::vector<std::byte>(data, data + found->second.size());
  }
  absl::StatusOr<std::unique_ptr<FileReader>> open_file(const std::string& path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return absl::NotFoundError(path);
    if (path == denied_) return with_context(why_, path);
    return std::make_unique<Reader>(found->second);
  }

 private:
  std::string denied_;
  absl::Status why_;
  using Tree = std::map<std::string, std::string>;
  struct Change {
    enum Kind { kWrite, kRename, kRemove } kind;
    std::string path;
    std::string content;
    std::string to;
  };

  class Writer final : public FileWriter {
   public:
    Writer(MemoryFileStore& store, std::string path) : store_(store), path_(std::move(path)) {}
    absl::Status append(std::span<const std::byte> bytes) override {
      return store_.append(path_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    absl::Status finish() override {
      PL_RETURN_IF_ERROR(store_.begin());
      store_.change({Change::kWrite, path_, store_.files_[path_]});
      return absl::OkStatus();
    }

   private:
    MemoryFileStore& store_;
    const std::string path_;
  };

  class Reader final : public FileReader {
   public:
    explicit Reader(std::string content) : content_(std::move(content)) {}
    std::uint64_t size() const override { return content_.size(); }
    absl::StatusOr<std::size_t> read(std::span<std::byte> out) override {
      const std::size_t count = std::min(out.size(), content_.size() - at_);
      std::copy_n(reinterpret_cast<const std::byte*>(content_.data()) + at_, count, out.begin());
      at_ += count;
      return count;
    }

   private:
    const std::string content_;
    std::size_t at_ = 0;
  };

  // Only what processes see: the disk has it when the writer has finished.
  absl::Status append(const std::string& path, std::string_view bytes) {
    const bool crashing = operations_ == crash_at_;
    absl::Status status = begin();
    if (!status.ok() && !crashing) return status;
    if (!status.ok()) bytes = bytes.substr(0, torn_bytes_);
    std::uint64_t used = bytes.size();
    for (const auto& [name, other] : files_) used += other.size();
    if (used > capacity_) {
      bytes.remove_suffix(std::min<std::uint64_t>(used - capacity_, bytes.size()));
      status = absl::ResourceExhaustedError("the disk is full");
    }
    files_[path].append(bytes);
    return status;
  }

  static std::string parent(const std::string& path) {
    return path.substr(0, std::min(path.rfind('/'), path.size()));
  }
  static bool inside(const std::string& path, const std::string& folder) {
    return path == folder || path.starts_with(folder + "/");
  }
  bool exists(const std::string& path) const { return files_.contains(path) || folders_.contains(path); }

  static void apply(const Change& change, Tree& tree, std::set<std::string>& folders) {
    if (change.kind == Change::kWrite) {
      tree[change.path] = change.content;
      return;
    }
    Tree moved;
    for (auto it = tree.begin(); it != tree.end();) {
      if (!inside(it->first, change.path)) {
        ++it;
        continue;
      }
      if (change.kind == Change::kRename)
        moved[change.to + it->first.substr(change.path.size())] = it->second;
      it = tree.erase(it);
    }
    for (auto& [path, content] : moved) tree[path] = content;
    std::set<std::string> renamed;
    std::erase_if(folders, [&](const std::string& folder) {
      if (!inside(folder, change.path)) return false;
      if (change.kind == Change::kRename) renamed.insert(change.to + folder.substr(change.path.size()));
      return true;
    });
    folders.merge(renamed);
  }
  void change(const Change& change) {
    apply(change, files_, folders_);
    pending_.push_back(change);
  }
  absl::Status begin() {
    const std::int64_t number = operations_++;
    return number >= crash_at_ ? absl::UnavailableError("crashed") : absl::OkStatus();
  }
  static void add_folders(const std::string& path, std::set<std::string>& folders) {
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      folders.insert(path.substr(0, slash));
    }
  }

  Tree files_;
  Tree synced_;
  std::set<std::string> folders_, synced_folders_;  // a new one is there at once
  std::vector<Change> pending_;
  std::int64_t operations_ = 0;
  std::int64_t crash_at_ = INT64_MAX;
  std::uint64_t torn_bytes_ = 0;
  std::uint64_t capacity_ = UINT64_MAX;
};

}  // namespace paceline::checkpoint
