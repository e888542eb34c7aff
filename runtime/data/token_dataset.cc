#include "runtime/data/token_dataset.h"

#include <algorithm>
#include <cstring>
#include <limits>

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

class TokenDataset final : public Dataset {
 public:
  TokenDataset(std::vector<std::shared_ptr<const InputFile>> files, TokenWidth width, std::int64_t block_size,
               std::int64_t vocabulary)
      : files_(std::move(files)), width_(width), block_(block_size) {
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

 private:
  // Tokens [first, first + count) of the concatenated files.
  absl::Status copy(std::int64_t first, std::int64_t count, std::int32_t* to) const {
    auto f =
        static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), first) - begins_.begin()) -
        1;
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
    return absl::OutOfRangeError(
        str_cat(files_[file]->path(), ": byte ", at + i * static_cast<std::int64_t>(width_), ": token ",
                static_cast<std::uint32_t>(tokens[i]), "; allowed: below the vocabulary's size, ", limit_));
  }

  const std::vector<std::shared_ptr<const InputFile>> files_;
  const TokenWidth width_;
  const std::int64_t block_;
  std::uint64_t limit_ = 0;
  SampleShape shape_;
  std::vector<std::int64_t> begins_;  // of each file, in tokens
  std::int64_t tokens_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> make_token_dataset(
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
