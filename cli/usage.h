#pragma once

// What is wrong with a command line, in our words where the library's would mislead.

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace paceline::cli {

// For an error of parsing by `app`: one line that says what is wrong, what was probably meant or is allowed,
// and where help is.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace paceline::cli
