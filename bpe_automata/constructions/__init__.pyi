from .cartesian_merge import CartesianMerge as CartesianMerge
from .engine import Engine as Engine, TextEngine as TextEngine
from .explicit import Explored as Explored, explore as explore, explored as explored
from .lift import Lift as Lift
from .segments import Segments as Segments
