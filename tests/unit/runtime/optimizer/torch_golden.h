#pragma once

// Made by torch_golden.py with PyTorch 2.15.0, in double precision.

#include "proto/paceline/v1/training.pb.h"

using TorchType = paceline::v1::OptimizerSpec;

struct TorchCase {
  struct {
    TorchType::Type type;
    double rate, momentum;
    bool nesterov;
    double decay, clip;
  } of;
  double weights[5];
};

inline constexpr int kTorchSteps = 6;
inline constexpr TorchCase kTorchCases[] = {
    {{TorchType::SGD, 0.1, 0, false, 0, 0}, {-0.6625, 0.475, -3.46944695195e-18, -0.475, 0.6625}},
    {{TorchType::SGD, 0.1, 0, false, 0, 0.75},
     {-0.688600813716, 0.483106789124, 3.77318641286e-18, -0.483106789124, 0.688600813716}},
    {{TorchType::SGD, 0.1, 0.9, false, 0.01, 0},
     {-0.414393834941, 0.239729188155, 0.0280003665827, -0.587051820285, 0.569913589219}},
    {{TorchType::SGD, 0.1, 0.9, false, 0.01, 0.75},
     {-0.505216265947, 0.304259661799, 0.015875908071, -0.573157856334, 0.629104678409}},
    {{TorchType::SGD, 0.1, 0.9, true, 0.01, 0},
     {-0.357732340698, 0.239247821928, 0.0250204587105, -0.549369682948, 0.496599382493}},
    {{TorchType::SGD, 0.1, 0.9, true, 0.01, 0.75},
     {-0.465140057571, 0.305081752315, 0.0141923710169, -0.545179992988, 0.57576170942}},
    {{TorchType::ADAM, 0.01, 0, false, 0.1, 0},
     {-0.713076318663, 0.466217894151, 0.010503649113, -0.508926972364, 0.71852717129}},
    {{TorchType::ADAM, 0.01, 0, false, 0.1, 0.75},
     {-0.713739027432, 0.466895743298, 0.00978714411074, -0.507918045338, 0.719593751024}},
    {{TorchType::ADAMW, 0.01, 0, false, 0.1, 0},
     {-0.714385176885, 0.467452095732, 0.010570046858, -0.511388459853, 0.721545213375}},
    {{TorchType::ADAMW, 0.01, 0, false, 0.1, 0.75},
     {-0.716369523878, 0.469105886227, 0.00986926764945, -0.511730189017, 0.724003647044}},
};
