#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <new>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "runtime/checkpoint/file_store.h"

namespace paceline::checkpoint {

namespace {

// As many bytes as there are, up to all of `out`.
absl::StatusOr<std::size_t> read_some(int fd, std::span<std::byte> out, const std::string& path) {
  std::size_t at = 0;
  while (at < out.size()) {
    const ssize_t got = ::read(fd, out.data() + at, out.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status(errno, str_cat("read ", path));
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  return at;
}

// The link because of which a path leads nowhere; empty: it is only not there.
std::string dangling_link(const std::string& path) {
  std::error_code error;
  for (std::filesystem::path part = path; part.has_relative_path(); part = part.parent_path()) {
    const auto kind = std::filesystem::symlink_status(part, error).type();
    if (kind == std::filesystem::file_type::not_found) continue;
    return kind == std::filesystem::file_type::symlink && !std::filesystem::exists(part, error)
               ? part.string()
               : "";
  }
  return "";
}

class DirectoryWriter final : public FileWriter {
 public:
  // `write_back` outlives it.
  DirectoryWriter(UniqueFd fd, std::string path, std::uint64_t piece_bytes, const WriteBack& write_back)
      : fd_(std::move(fd)), path_(std::move(path)), piece_bytes_(piece_bytes), write_back_(write_back) {}
  absl::Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const std::uint64_t room = piece_bytes_ - written_ % piece_bytes_;
      const ssize_t written = ::write(fd_.get(), bytes.data(), std::min<std::uint64_t>(room, bytes.size()));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno_status(errno, str_cat("write ", path_));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      written_ += static_cast<std::uint64_t>(written);
      if (written > 0 && written_ % piece_bytes_ == 0) PL_RETURN_IF_ERROR(piece_written());
    }
    return absl::OkStatus();
  }
  absl::Status finish() override {
    return ::fsync(fd_.get()) == 0 ? absl::OkStatus() : errno_status(errno, str_cat("sync ", path_));
  }

 private:
  // The disk works on it while the next is filled, and is done with the one before.
  absl::Status piece_written() {
    absl::Status status = write_back_(fd_.get(), written_ - piece_bytes_, piece_bytes_, false);
    if (status.ok() && written_ > piece_bytes_)
      status = write_back_(fd_.get(), written_ - 2 * piece_bytes_, piece_bytes_, true);
    return status.ok() ? status : with_context(status, path_);
  }

  const UniqueFd fd_;
  const std::string path_;
  const std::uint64_t piece_bytes_;
  const WriteBack& write_back_;
  std::uint64_t written_ = 0;
};

class DirectoryReader final : public FileReader {
 public:
  DirectoryReader(UniqueFd fd, std::string path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  absl::StatusOr<std::size_t> read(std::span<std::byte> out) override {
    return read_some(fd_.get(), out, path_);
  }

 private:
  const UniqueFd fd_;
  const std::string path_;
  const std::uint64_t size_;
};

class DirectoryStore final : public FileStore {
 public:
  DirectoryStore(std::uint64_t piece_bytes, WriteBack write_back)
      : piece_bytes_(piece_bytes), write_back_(std::move(write_back)) {}

  absl::Status make_folder(const std::string& path) override {
    std::filesystem::path folder;
    for (const auto& part : std::filesystem::path(path)) {
      const std::string parent = folder.empty() ? "." : folder.string();
      folder /= part;
      const int error = ::mkdir(folder.c_str(), 0755) == 0 ? 0 : errno;
      if (error == 0) {
        PL_RETURN_IF_ERROR(sync_folder(parent));
      } else if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored)) {
        return errno_status(error, str_cat("create folder ", folder.string()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status write_file(const std::string& path,
                          std::span<const std::span<const std::byte>> pieces) override {
    PL_ASSIGN_OR_RETURN(const auto writer, create_file(path));
    for (const auto& piece : pieces) PL_RETURN_IF_ERROR(writer->append(piece));
    return writer->finish();
  }

  absl::StatusOr<std::unique_ptr<FileWriter>> create_file(const std::string& path) override {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.valid()) return errno_status(errno, str_cat("create ", path));
    return std::make_unique<DirectoryWriter>(std::move(fd), path, piece_bytes_, write_back_);
  }

  absl::Status sync_folder(const std::string& path) override {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) return errno_status(errno, str_cat("open folder ", path));
    // EINVAL: a file system (some network ones) that has no such operation.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno_status(errno, str_cat("sync folder ", path));
    return absl::OkStatus();
  }

  absl::Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return errno_status(errno, str_cat("rename ", from, " to ", to));
  }

  absl::Status remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return error ? errno_status(error.value(), str_cat("remove ", path)) : absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> list(const std::string& path) const override {
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    // Unlike a path that leads nowhere, it is not to be waited for.
    if (error == std::errc::not_a_directory) {
      return absl::InvalidArgumentError(
          str_cat("list ", path, ": there is a file in the place of a folder (", error.message(), ")"));
    }
    if (error == std::errc::no_such_file_or_directory) {
      if (const std::string link = dangling_link(path); !link.empty())
        return absl::InvalidArgumentError(
            str_cat("list ", path, ": ", link, " is a link that leads nowhere"));
    }
    if (error) return errno_status(error.value(), str_cat("list ", path));
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path,
                                                   std::uint64_t limit) const override {
    PL_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
    const std::uint64_t size = file.size;
    if (size > limit) {
      return absl::FailedPreconditionError(str_cat(path, " has ", size, " bytes; allowed: ", limit));
    }
    std::vector<std::byte> content;
    try {
      content.resize(size);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError(str_cat("no memory for the ", size, " bytes of ", path));
    }
    // Fewer where it shrank: what is left is judged by its length.
    PL_ASSIGN_OR_RETURN(const std::size_t got, read_some(file.fd.get(), content, path));
    content.resize(got);
    return content;
  }

  absl::StatusOr<std::unique_ptr<FileReader>> open_file(const std::string& path) const override {
    PL_ASSIGN_OR_RETURN(RegularFile file, open_regular_file(path));
    return std::make_unique<DirectoryReader>(std::move(file.fd), path, file.size);
  }

 private:
  const std::uint64_t piece_bytes_;
  const WriteBack write_back_;
};

}  // namespace

absl::Status write_back(int fd, std::uint64_t at, std::uint64_t bytes, bool await) {
#ifdef SYNC_FILE_RANGE_WRITE
  const unsigned how = await
                           ? SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER
                           : SYNC_FILE_RANGE_WRITE;
  if (::sync_file_range(fd, static_cast<off_t>(at), static_cast<off_t>(bytes), how) == 0)
    return absl::OkStatus();
  // Unknown to a sandbox's kernel, or to this kind of file.
  if (errno != ENOSYS && errno != ESPIPE && errno != EINVAL) return errno_status(errno, "write back");
#else
  (void)at, (void)bytes;
#endif
  if (!await || ::fdatasync(fd) == 0) return absl::OkStatus();
  return errno_status(errno, "write back");
}

std::unique_ptr<FileStore> make_directory_store(std::uint64_t piece_bytes, WriteBack write_back) {
  return std::make_unique<DirectoryStore>(piece_bytes, std::move(write_back));
}

}  // namespace paceline::checkpoint
