// A Python module that holds the points compiled into it and nothing else, one for each library that may be absent.
#pragma once

#include <Python.h>

#include "grid_point.hpp"

namespace grid {

inline PyObject* module_of(PyModuleDef& definition, const std::vector<Member>& members) {
    PyObject* const module = PyModule_Create(&definition);
    if (!module) return nullptr;
    PyObject* const capsule = PyCapsule_New(const_cast<std::vector<Member>*>(&members), capsule_name(), nullptr);
    const bool added = capsule && PyModule_AddObjectRef(module, "members", capsule) == 0;
    Py_XDECREF(capsule);
    if (added) return module;
    Py_DECREF(module);
    return nullptr;
}

}  // namespace grid

// Defines the module NAME with the points of GRID.
#define GRID_MODULE(NAME, GRID)                                                                          \
    static PyModuleDef NAME##_definition = {PyModuleDef_HEAD_INIT, #NAME, nullptr, -1, nullptr, nullptr, \
                                            nullptr, nullptr, nullptr};                                  \
    PyMODINIT_FUNC PyInit_##NAME() { return grid::module_of(NAME##_definition, GRID::members()); }
