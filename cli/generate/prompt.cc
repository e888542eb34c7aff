#include "cli/generate/prompt.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/whole_number.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxShown = 32;

// The character of UTF-8 that byte `at` belongs to, as it looks; empty: of none that can be shown.
std::string_view character_at(std::string_view text, std::size_t at) {
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
  std::size_t begin = at;
  while (begin > 0 && at - begin < 3 && continues(begin)) --begin;
  const auto first = static_cast<unsigned char>(text[begin]);
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (begin + size > text.size() || (size == 1 && (first >= 0x80 || first < 0x20 || first == 0x7f)))
    return {};
  for (std::size_t i = begin + 1; i < begin + size; ++i) {
    if (!continues(i)) return {};
  }
  return text.substr(begin, size);
}

}  // namespace

Writing writing_of(const v1::DataSpec& data) {
  return data.format() == v1::DataSpec::TEXT ? Writing::kBytes : Writing::kNumbers;
}

absl::StatusOr<std::vector<std::int32_t>> tokens_of_text(std::string_view text, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= vocabulary) {
      const std::string_view character = character_at(text, i);
      return absl::InvalidArgumentError(
          str_cat("the prompt's byte ", i, ", ", absl::StrFormat("0x%02x", byte),
                  character.empty() ? "" : str_cat(" of \"", character, "\""),
                  ", is no token of the model, whose vocabularySize is ", vocabulary));
    }
    tokens.push_back(byte);
  }
  return tokens;
}

absl::StatusOr<std::vector<std::int32_t>> tokens_of_numbers(std::string_view list, std::int64_t vocabulary) {
  constexpr std::string_view kSpace = " \t\r\n", kBetween = ", \t\r\n";
  std::vector<std::int32_t> tokens;
  bool after_token = false;  // and no comma since
  for (std::size_t at = 0; (at = list.find_first_not_of(kSpace, at)) != std::string_view::npos;) {
    if (list[at] == ',') {
      if (!after_token)
        return absl::InvalidArgumentError(
            str_cat("the prompt's token ", tokens.size(), ": nothing stands before its comma"));
      after_token = false;
      ++at;
      continue;
    }
    const std::size_t end = std::min(list.find_first_of(kBetween, at), list.size());
    // A longer one is no such number, and neither is its beginning.
    const std::string_view word = list.substr(at, std::min(end - at, kMaxShown));
    if (const auto fault = whole_number_fault<std::int64_t>(word, 0, vocabulary - 1); !fault.empty())
      return absl::InvalidArgumentError(str_cat("the prompt's token ", tokens.size(), ": ", fault));
    std::from_chars(word.data(), word.data() + word.size(), tokens.emplace_back());
    at = end;
    after_token = true;
  }
  return tokens;
}

}  // namespace paceline::cli
