#pragma once

// Tokens as they come, on a terminal or a pipe: bytes of text, or numbers with commas between. A terminal
// gets characters whole, and harmless; a pipe gets every byte as it is. One thread.

#include <cstdint>
#include <ostream>
#include <span>
#include <string>

#include "cli/generate/prompt.h"

namespace paceline::cli {

class TokenPrinter {
 public:
  TokenPrinter(std::ostream& out, Writing writing, bool terminal)
      : out_(out), writing_(writing), terminal_(terminal) {}

  // At once, all in one piece. False: nobody reads any more, or it can't be written.
  bool print(std::span<const std::int32_t> tokens);
  bool print(std::int32_t token) { return print(std::span(&token, 1)); }
  // Ends the line, if one has begun.
  bool end();

 private:
  void add_byte(char byte, std::string& piece);

  std::ostream& out_;
  const Writing writing_;
  const bool terminal_;
  bool in_line_ = false;
  std::string begun_;  // of a character whose last byte has not come
};

}  // namespace paceline::cli
