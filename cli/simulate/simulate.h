#pragma once

// `paceline simulate`: the modes of parameter servers in virtual time.

#include "cli/session.h"

namespace paceline::cli {

void add_simulate(CLI::App& app, Session& session);

}  // namespace paceline::cli
