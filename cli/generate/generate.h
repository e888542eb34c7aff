#pragma once

// `paceline generate`: text, or token numbers, by a trained gpt.

#include "cli/session.h"

namespace paceline::cli {

void add_generate(CLI::App& app, Session& session);

}  // namespace paceline::cli
