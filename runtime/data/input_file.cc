#include "runtime/data/input_file.h"

#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/data_path.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"

namespace paceline::data {

namespace {

constexpr std::uint64_t kInflateRatio = 1032;  // deflate's greatest
constexpr std::uint64_t kFirstBufferBytes = 64 * 1024;
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;  // zlib counts in 32 bits

bool is_gzip(std::span<const std::byte> file) {
  return file.size() >= 18 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b};
}

// The last four bytes of a gzip file are the content's size modulo 2^32: a hint, which a damaged or hostile
// file may falsify.
std::uint64_t first_buffer_bytes(std::span<const std::byte> file, std::uint64_t limit) {
  std::uint64_t hint = 0;
  for (int i = 0; i < 4; ++i) {
    hint |= std::to_integer<std::uint64_t>(file[file.size() - 4 + static_cast<std::size_t>(i)]) << (8 * i);
  }
  if (hint > file.size() * kInflateRatio) hint = 0;
  return std::min(limit + 1, std::max(kFirstBufferBytes, hint + 64));
}

// A growing buffer without zero-filling.
struct Buffer {
  std::unique_ptr<std::byte[]> data;
  std::uint64_t capacity = 0;
  std::uint64_t size = 0;

  bool reserve(std::uint64_t wanted) {
    if (wanted <= capacity) return true;
    std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[wanted]);
    if (larger == nullptr) return false;
    if (size > 0) std::memcpy(larger.get(), data.get(), size);
    data = std::move(larger);
    capacity = wanted;
    return true;
  }
};

class Inflater {
 public:
  Inflater() {
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }  // 15: the largest window; 16: gzip's header
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // All members of `file`, one after the other, up to zeros that fill a block, as gzip does.
  absl::Status run(std::span<const std::byte> file, std::uint64_t limit, Buffer& out) {
    if (!ready_ || !out.reserve(first_buffer_bytes(file, limit))) return no_memory(out.size);
    std::uint64_t consumed = 0;
    while (true) {
      const std::uint64_t in = std::min<std::uint64_t>(file.size() - consumed, kPieceBytes);
      const std::uint64_t room = std::min(out.capacity - out.size, kPieceBytes);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data() + consumed));
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data.get() + out.size);
      stream_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      consumed += in - stream_.avail_in;
      out.size += room - stream_.avail_out;
      if (out.size > limit) {
        return absl::ResourceExhaustedError(str_cat("inflates to more than ", limit, " bytes, the limit"));
      }
      if (result == Z_STREAM_END) {
        const auto zero = [](std::byte b) { return b == std::byte{0}; };
        if (std::ranges::all_of(file.subspan(consumed), zero))
          return absl::OkStatus();  // padding, or nothing
        if (!is_gzip(file.subspan(consumed)) || inflateReset(&stream_) != Z_OK) {
          return damaged(consumed, "there are bytes after the end of the gzip stream");
        }
      } else if (result == Z_MEM_ERROR) {
        return no_memory(out.size);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return damaged(consumed, stream_.msg != nullptr ? stream_.msg : "unknown error");
      } else if (out.size == out.capacity) {
        if (!out.reserve(std::min(limit + 1, out.capacity * 2))) return no_memory(out.size);
      } else if (consumed == file.size()) {
        return damaged(consumed, "the file ends in the middle of the gzip stream");
      }
    }
  }

 private:
  static absl::Status no_memory(std::uint64_t size) {
    return absl::ResourceExhaustedError(str_cat("no memory to inflate beyond ", size, " bytes"));
  }
  static absl::Status damaged(std::uint64_t at, std::string_view what) {
    return absl::InvalidArgumentError(str_cat("damaged gzip file at byte ", at, ": ", what));
  }

  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path,
                                                                 std::uint64_t inflated_limit) {
  PL_RETURN_IF_ERROR(check_no_folder(path));
  PL_ASSIGN_OR_RETURN(const RegularFile opened, open_regular_file(path));
  std::shared_ptr<InputFile> file(new InputFile(path));
  const auto size = static_cast<std::size_t>(opened.size);
  if (size == 0) return file;
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, opened.fd.get(), 0);
  if (mapped == MAP_FAILED) return errno_status(errno, str_cat("map ", path));
  file->mapping_ = {static_cast<std::byte*>(mapped), size};
  file->bytes_ = file->mapping_;
  if (!is_gzip(file->bytes_)) return file;

  ::madvise(mapped, size, MADV_SEQUENTIAL);
  Buffer inflated;
  PL_RETURN_IF_ERROR(with_context(Inflater().run(file->mapping_, inflated_limit, inflated), path));
  file->inflated_ = std::move(inflated.data);
  file->bytes_ = {file->inflated_.get(), static_cast<std::size_t>(inflated.size)};
  ::munmap(mapped, size);
  file->mapping_ = {};
  return file;
}

InputFile::~InputFile() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

}  // namespace paceline::data
