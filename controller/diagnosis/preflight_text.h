#pragma once

// The check before the first step as text for people. Pure.

#include <string>

#include "controller/api/preflight.h"

namespace paceline::diagnosis {

// "2.3x the others' median in the compute test (12 ms, theirs 5.1 ms)", "it did not finish the link test in
// time".
std::string figures_of(const api::UnfitMember& member);
// "worker-1 on node-b: 2.3x the others' median in the compute test (12 ms, theirs 5.1 ms); it is excluded".
// `told`: why one before it stays, which is not said again.
std::string text_of(const api::UnfitMember& member, const std::string& told = {});
// The sentence of Preflight::message, from the other fields; `why`: of kFailed.
std::string message_of(const api::Preflight& result, const std::string& why = {});

}  // namespace paceline::diagnosis
