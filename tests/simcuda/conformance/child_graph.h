// A process that holds memory of graphs. Layer: none.
#pragma once
#include <cstddef>

// Launches a graph that allocates and frees this many bytes, in the current context. Returns the error.
int launch_graph(std::size_t bytes);
