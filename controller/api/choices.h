#pragma once

// The names that stand in YAML for each enumeration, in the order of its values; those kept for later
// versions come last.

#include "controller/api/types.h"

namespace paceline::api {

struct Choice {
  const char* name;
  bool reserved = false;  // named in the design, refused by this version
};

// The position of a name is the enumeration's value.
template <typename Enum>
extern const Choice kChoices[];

// clang-format off
template <> inline constexpr Choice kChoices<StrategyType>[] = {{"AllReduce"}, {"ParameterServer"}};
template <> inline constexpr Choice kChoices<Synchronization>[] = {
    {"Synchronous"}, {"Asynchronous"}, {"BoundedStaleness"}, {"LocalSteps", true}, {"Delayed", true}};
template <> inline constexpr Choice kChoices<Transport>[] = {{"Auto"}, {"SharedMemory"}, {"TCP"}};
template <> inline constexpr Choice kChoices<Encryption>[] = {{"None"}, {"TLS"}};
template <> inline constexpr Choice kChoices<Algorithm>[] = {
    {"Auto"}, {"Ring"}, {"RecursiveDoubling"}, {"HalvingDoubling"}, {"Direct"}};
template <> inline constexpr Choice kChoices<RestartPolicy>[] =
    {{"Never"}, {"Always"}, {"OnFailure"}, {"ExitCode"}};
template <> inline constexpr Choice kChoices<RestartScope>[] = {{"Replica"}, {"Role"}, {"Job"}};
template <> inline constexpr Choice kChoices<CleanPodPolicy>[] = {{"Running"}, {"All"}, {"None"}};
template <> inline constexpr Choice kChoices<PreflightAction>[] = {{"Exclude"}, {"Report"}};
template <> inline constexpr Choice kChoices<StragglerPolicyAction>[] =
    {{"Report"}, {"Replace"}, {"Ignore"}, {"Rebalance"}};
template <> inline constexpr Choice kChoices<ModelType>[] =
    {{"mlp"}, {"cnn"}, {"gpt"}, {"custom"}, {"wide-and-deep"}};
template <> inline constexpr Choice kChoices<RowOptimizerType>[] = {{"SGD"}, {"Adagrad"}, {"Adam"}, {"FTRL"}};
template <> inline constexpr Choice kChoices<Eviction>[] = {{"LeastRecent"}, {"LeastFrequent"}};
template <> inline constexpr Choice kChoices<Activation>[] = {{"ReLU"}, {"GELU"}, {"Tanh"}};
template <> inline constexpr Choice kChoices<DataFormat>[] =
    {{"idx"}, {"cifar10"}, {"tokens"}, {"text"}, {"npy"}, {"csv"}, {"custom"}, {"clicks"}};
template <> inline constexpr Choice kChoices<TokenType>[] = {{"uint16"}, {"uint32"}};
template <> inline constexpr Choice kChoices<Separator>[] = {{"comma"}, {"semicolon"}, {"tab"}};
template <> inline constexpr Choice kChoices<OptimizerType>[] = {{"SGD"}, {"Adam"}, {"AdamW"}, {"Adagrad"}};
template <> inline constexpr Choice kChoices<ScheduleType>[] = {{"Constant"}, {"Step"}, {"Cosine"}};
template <> inline constexpr Choice kChoices<Precision>[] = {{"FP32"}, {"BF16"}};
// clang-format on

}  // namespace paceline::api
