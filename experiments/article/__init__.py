"""The tables and figures of Tran-Thien (2024), published beside measured."""
