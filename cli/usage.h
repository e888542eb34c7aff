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

// Every option of `app` and of its commands refuses an empty value, such as "$UNSET", but for one of type
// TEXT.
void refuse_empty_values(CLI::App& app);

// The message about the first argument of the form --name=; empty: there is none. The library would take the
// next argument for the value.
std::string missing_value(int argc, const char* const* argv);

}  // namespace paceline::cli
