#include "runtime/data/token_dataset.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/check.h"
#include "base/status.h"

namespace paceline::data {

namespace {

// Widens `count` tokens and returns the largest.
template <typename T>
std::uint32_t widen(const std::byte* from, std::int64_t count, std::int32_t* to) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    T token;
    std::memcpy(&token, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    to[i] = static_cast<std::int32_t>(token);
    largest = std::max(largest, static_cast<std::uint32_t>(token));
  }
  return largest;
}

std::uint32_t widen(TokenWidth width, const std::byte* from, std::int64_t count, std::int32_t* to) {
  switch (width) {
    case TokenWidth::kByte:
      return widen<std::uint8_t>(from, count, to);
    case TokenWidth::kUint16:
      return widen<std::uint16_t>(from, count, to);
    case TokenWidth::kUint32:
      return widen<std::uint32_t>(from, count, to);
  }
  return 0;
}

constexpr std::size_t kSeenWords = 4096, kFewestTokens = 64, kFewestDifferent = 8;
constexpr std::int64_t kInspectedTokens = 16 * 1024;
constexpr std::uint32_t kLlmcMagics[] = {20240520, 20240801};  // https://github.com/karpathy/llm.c
constexpr std::size_t kLlmcHeaderBytes = 1024;

// Whether the file begins like tokens of `words` times `width`, all below `vocabulary`: all but the lowest
// words are 0, or what such tokens have above 16 bits.
bool seems_wider(std::span<const std::byte> file, TokenWidth width, std::size_t words,
                 std::int64_t vocabulary) {
  const std::size_t bytes = static_cast<std::size_t>(width);
  std::vector<std::int32_t> found(std::min(kSeenWords, file.size() / bytes) / words * words);
  if (found.size() < kFewestTokens * words) return false;
  widen(width, file.data(), static_cast<std::int64_t>(found.size()), found.data());
  const std::int64_t above = width == TokenWidth::kUint16 && vocabulary > 0 ? (vocabulary - 1) >> 16 : 0;
  std::set<std::int32_t> lowest;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i % words == 0) {
      lowest.insert(found[i]);
    } else if (found[i] < 0 || found[i] > (i % words == 1 ? above : 0)) {
      return false;
    }
  }
  return lowest.size() >= kFewestDifferent;
}

// A header in front, or tokens of another width, where a file shows it.
absl::Status check_looks(std::span<const std::byte> file, TokenWidth width, std::int64_t vocabulary) {
  if (width == TokenWidth::kByte) return absl::OkStatus();
  std::uint32_t magic = 0;
  if (file.size() >= kLlmcHeaderBytes) std::memcpy(&magic, file.data(), sizeof(magic));
  if (std::ranges::find(kLlmcMagics, magic) != std::end(kLlmcMagics)) {
    return absl::InvalidArgumentError(
        "llm.c's header of 1024 bytes comes before the tokens; allowed: tokens alone. Cut it off (tail -c "
        "+1025)");
  }
  if (seems_wider(file, width, width == TokenWidth::kUint16 ? 4 : 2, vocabulary)) {
    return absl::InvalidArgumentError(
        "the tokens seem to have 64 bits, as NumPy's whole numbers have them; allowed: 16 or 32. Write them "
        "by tokens.astype('uint16').tofile(...), or uint32");
  }
  if (width == TokenWidth::kUint16 && seems_wider(file, width, 2, vocabulary)) {
    return absl::InvalidArgumentError(
        "the tokens seem to have 32 bits, not 16; set spec.training.data.tokenType: uint32");
  }
  return absl::OkStatus();
}

class TokenDataset final : public FileDataset {
 public:
  TokenDataset(std::vector<std::shared_ptr<const InputFile>> files, TokenWidth width, std::int64_t block_size,
               std::int64_t vocabulary)
      : files_(std::move(files)), width_(width), block_(block_size), vocabulary_(vocabulary) {
    limit_ = vocabulary > 0 ? static_cast<std::uint64_t>(vocabulary) : std::uint64_t{1} << 31;
    shape_.kind = InputKind::kTokens;
    shape_.dims = {block_size};
    shape_.labels = block_size;
    shape_.classes = width == TokenWidth::kByte ? 256 : vocabulary;
    for (const auto& file : files_) {
      begins_.push_back(tokens_);
      tokens_ += static_cast<std::int64_t>(file->bytes().size() / static_cast<std::size_t>(width));
    }
  }

  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return (tokens_ - 1) / block_; }

  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                     const BatchView& batch) const override {
    const auto block = static_cast<std::size_t>(block_);
    PL_CHECK(batch.tokens.size() == indices.size() * block && batch.labels.size() == indices.size() * block,
             "the batch has room for exactly these samples");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      PL_CHECK(indices[i] >= 0 && indices[i] < size(), "the sample is in the data set");
      const std::int64_t first = indices[i] * block_;
      std::int32_t* tokens = batch.tokens.data() + i * block;
      std::int32_t* labels = batch.labels.data() + i * block;
      PL_RETURN_IF_ERROR(copy(first, block_, tokens));
      std::memcpy(labels, tokens + 1, (block - 1) * sizeof(*labels));
      PL_RETURN_IF_ERROR(copy(first + block_, 1, labels + block - 1));
    }
    return absl::OkStatus();
  }

  std::string place_of(std::int64_t index) const override {
    const std::size_t f = file_of(index * block_);
    return str_cat(files_[f]->path(), ": byte ",
                   (index * block_ - begins_[f]) * static_cast<std::int64_t>(width_));
  }

  std::uint64_t inspected_bytes() const override {
    const bool none = limit_ >> (8 * static_cast<int>(width_)) != 0;  // all that the width has are allowed
    return none ? 0 : static_cast<std::uint64_t>(tokens_) * static_cast<std::uint64_t>(width_);
  }

  absl::Status inspect(const std::stop_token& stop) const override {
    if (inspected_bytes() == 0) return absl::OkStatus();
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(kInspectedTokens));
    const std::int64_t end = size() * block_ + 1;
    for (std::int64_t at = 0; at < end && !stop.stop_requested(); at += kInspectedTokens)
      PL_RETURN_IF_ERROR(copy(at, std::min(kInspectedTokens, end - at), tokens.data()));
    return absl::OkStatus();
  }

 private:
  std::size_t file_of(std::int64_t token) const {
    return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), token) -
                                    begins_.begin()) -
           1;
  }

  // Tokens [first, first + count) of the concatenated files.
  absl::Status copy(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    std::size_t f = file_of(first);
    while (count > 0) {
      const std::int64_t end = f + 1 < begins_.size() ? begins_[f + 1] : tokens_;
      const std::int64_t here = std::min(count, end - first);
      const std::int64_t at = (first - begins_[f]) * static_cast<std::int64_t>(width_);
      if (widen(width_, files_[f]->bytes().data() + at, here, to) >= limit_)
        return too_large(f, at, to, here);
      first += here;
      count -= here;
      to += here;
      ++f;
    }
    return absl::OkStatus();
  }

  absl::Status too_large(std::size_t file, std::int64_t at, const std::int32_t* tokens,
                         std::int64_t count) const {
    std::int64_t i = 0;
    while (i + 1 < count && static_cast<std::uint32_t>(tokens[i]) < limit_) ++i;
    return absl::InvalidArgumentError(
        str_cat(files_[file]->path(), ": byte ", at + i * static_cast<std::int64_t>(width_), ": token ",
                static_cast<std::uint32_t>(tokens[i]), "; allowed: below the vocabulary's size, ", limit_,
                seems_narrower(*files_[file])
                    ? "; the tokens seem to have 16 bits, not 32: set spec.training.data.tokenType: uint16"
                    : ""));
  }

  // Read as 16-bit tokens all are below the vocabulary's size.
  bool seems_narrower(const InputFile& file) const {
    if (width_ != TokenWidth::kUint32 || vocabulary_ == 0) return false;
    std::vector<std::int32_t> found(std::min(kSeenWords, file.bytes().size() / 2));
    return widen(TokenWidth::kUint16, file.bytes().data(), static_cast<std::int64_t>(found.size()),
                 found.data()) < limit_ &&
           limit_ < std::uint64_t{1} << 16;
  }

  const std::vector<std::shared_ptr<const InputFile>> files_;
  const TokenWidth width_;
  const std::int64_t block_;
  const std::int64_t vocabulary_;
  std::uint64_t limit_ = 0;
  SampleShape shape_;
  std::vector<std::int64_t> begins_;  // of each file, in tokens
  std::int64_t tokens_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const FileDataset>> make_token_dataset(
    std::vector<std::shared_ptr<const InputFile>> files, TokenWidth width, std::int64_t block_size,
    std::int64_t vocabulary) {
  PL_CHECK(block_size > 0 && vocabulary >= 0, "a sample has tokens");
  const auto bytes = static_cast<std::size_t>(width);
  std::erase_if(files, [](const auto& file) { return file->bytes().empty(); });
  std::uint64_t tokens = 0;
  for (const auto& file : files) {
    if (file->bytes().size() % bytes != 0) {
      return absl::InvalidArgumentError(str_cat(file->path(), ": ", file->bytes().size(),
                                                " bytes are not a multiple of ", bytes,
                                                ", the size of a token"));
    }
    PL_RETURN_IF_ERROR(with_context(check_looks(file->bytes(), width, vocabulary), file->path()));
    tokens += file->bytes().size() / bytes;
  }
  if (tokens == 0 || (tokens - 1) / static_cast<std::uint64_t>(block_size) == 0) {
    return absl::InvalidArgumentError(str_cat("the files hold ", tokens, " tokens; a sample of ", block_size,
                                              " tokens and their successors needs at least ",
                                              block_size + 1));
  }
  return std::make_shared<TokenDataset>(std::move(files), width, block_size, vocabulary);
}

}  // namespace paceline::data
