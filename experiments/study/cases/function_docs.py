"""Functions that models are asked to call: names, parameters and their types.

Source: the function documents in the PyPI package `bfcl-eval` 2026.3.23 (Berkeley Function Calling
Leaderboard; Apache-2.0, https://github.com/ShishirPatil/gorilla). Only facts are kept: the names,
the order of the parameters, their types and enumerations; the descriptions and the requests of
that benchmark are not. Where it has several versions of a function, this is one of them. Its types
"dict" and "float" are called object and number here; the list of airlines is left out, and so are
the values of `exclude_archived`.
"""

from __future__ import annotations

DOCS = {
    "uber.ride": "loc string; type plus|comfort|black; time integer",
    "send_message": "message string; recipient string; priority low|normal|high; timestamp string",
    "http_request": (
        "method GET|POST|PUT|DELETE|PATCH; url string; payload_json string; "
        "request_heartbeat boolean; headers object"
    ),
    "todo.add": "content string; priority low|medium|high; due_date string; completed boolean",
    "run_microwave": (
        "power_level low|medium|high; duration integer; mode defrost|grill|convection|microwave"
    ),
    "BankStatementOverView": (
        "bank_name string; account_number string; "
        "account_type checking|savings|credit|loan|investment; full_name string; "
        "transaction_overview object"
    ),
    "get_movies": (
        "city string; cinema_hall string; movie_date string; "
        "movie_language Hindi|English|Malayalam|Telugu|Punjabi; "
        "movie_format 2D|3D|4DX|2D Screen X|ICE|IMAX 2D"
    ),
    "acl_api.add_mapping": (
        "principal_id string; resource_id string; permissions read|write|delete|admin"
    ),
    "stock_price.get": "ticker string; exchange NYSE|NASDAQ|LSE|TSX",
    "get_shopping": "item_name string; location string; currency USD|EUR|GBP|JPY|CNY",
    "archive_documents": (
        "document_ids array; archive_format zip|tar|gzip|7z; storage_path string; "
        "compression_level integer; include_metadata boolean"
    ),
    "generate_report": (
        "user_id integer; start_date string; end_date string; include_performance_data boolean; "
        "report_format pdf|html|csv"
    ),
    "game_rewards.get": (
        "game string; platform string; mission string; trophy bronze|silver|gold|platinum"
    ),
    "game_scores.get": "game string; platform Xbox|Playstation|PC; level integer; player string",
    "filter_list": (
        "elements array; condition startswith|endswith|contains|equals; filter_value string"
    ),
    "create_vulnerability": (
        "title string; severity Low|Medium|High|Critical; description string; "
        "status Open|In Review|Resolved; identified_date string; affected_systems array; "
        "reporter string"
    ),
    "flipImageAction": "flip_direction horizontal|vertical",
    "rotateImageAction": (
        "degrees integer; image_format JPEG|PNG|BMP|GIF|TIFF; keep_original boolean"
    ),
    "Flights_4_SearchOnewayFlight": (
        "origin_airport string; destination_airport string; departure_date string; "
        "seating_class Economy|Premium Economy|Business; number_of_tickets integer"
    ),
    "RentalCars_3_ReserveCar": (
        "pickup_location string; start_date string; pickup_time string; end_date string; "
        "car_type Hatchback|Sedan|SUV|dontcare; add_insurance boolean"
    ),
    "RideSharing_2_GetRide": (
        "destination string; number_of_seats integer; ride_type Pool|Regular|Luxury"
    ),
    "Buses_3_FindBus": (
        "from_city string; to_city string; departure_date string; num_passengers 1|2|3|4|5; "
        "category direct|one-stop"
    ),
    "Payment_1_MakePayment": (
        "payment_method app balance|debit card|credit card; amount number; receiver string; "
        "private_visibility boolean"
    ),
    "Homes_2_FindHomeByArea": (
        "area string; intent rent|buy; number_of_beds integer; number_of_baths integer; "
        "has_garage True|False|dontcare; in_unit_laundry True|False|dontcare"
    ),
    "fmp.income_statement": (
        "symbol string; period annual|quarter; cik string; datatype json|csv; limit integer"
    ),
    "search_messages": (
        "token string; query string; count integer; highlight boolean; page integer; "
        "sort date|relevance; sort_dir asc|desc"
    ),
    "users_setPresence": "token string; presence online|away|dnd|invisible",
    "users_conversations": (
        "token string; user string; types public_channel|private_channel|mpim|im; "
        "exclude_archived string; limit integer; cursor string"
    ),
    "ThinQ_Connect": (
        "airConJobMode AIR_CLEAN|COOL|AIR_DRY; airFlow LOW|HIGH|MID; airQualitySensor boolean; "
        "airCleanOperationMode POWER_ON|POWER_OFF; powerSave boolean; "
        "coolTargetTemperature integer; targetTemperature integer"
    ),
    "obtener_cotizacion_de_creditos": (
        "monto_del_credito number; plazo_del_credito_mensual integer; "
        "tasa_interes_minima number; producto hipotecario|auto|personal|negocios; "
        "año_vehiculo integer; enganche number"
    ),
    "log_food": (
        "food_name string; portion_amount number; "
        "portion_unit grams|ounces|pieces|cups|tablespoons; meal_name string"
    ),
    "language_translator.translate": (
        "source_language en|hi|es|fr|de; target_language hi|id|es|fr|de; text string"
    ),
    "compound_interest": (
        "principal integer; annual_rate number; compounding_freq monthly|quarterly|annually; "
        "time_in_years integer"
    ),
    "calculate_slope_gradient": "point1 array; point2 array; unit degree|percent|ratio",
    "ecology_data.precipitation_stats": "location string; time_frame six_months|year|five_years",
    "get_traffic_info": (
        "start_location string; end_location string; mode driving|walking|bicycling|transit"
    ),
    "get_museum_hours": (
        "museum_name string; day Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
    ),
    "array_sort": "list array; order ascending|descending",
    "analyze_dna_sequence": (
        "sequence string; reference_sequence string; mutation_type insertion|deletion|substitution"
    ),
    "court_case.find": "location string; case_number array; case_type Civil|Criminal",
    "recipe_search.find": "dish string; diet Vegan|Vegetarian|Paleo|Keto",
    "whole_foods.order": "location string; items array; size small|medium|large",
    "location.get_travel_time": "destination string; mode Driving|Biking|Walking",
    "music_composer.create_mix": (
        "scale string; note_duration whole|half|quarter|eighth|sixteenth; track_length integer"
    ),
    "music_theory.key_signature": "key string; scale_type major|minor",
    "get_vegan_recipe": (
        "dish_type soup|main dish|dessert|salad; cooking_time integer; ingredient_preference array"
    ),
    "history_eu.fetch_events": (
        "century integer; region Northern|Southern|Eastern|Western; "
        "category Wars|Culture|Politics|Scientific|Others"
    ),
    "patient.get_mri_report": (
        "patient_id string; mri_type brain|spinal|chest|abdominal; "
        "status in progress|concluded|draft"
    ),
    "fetch_url_content": "url string; mode raw|markdown|truncate",
    "lockDoors": "unlock boolean; door array",
    "setCruiseControl": "speed number; activate boolean; distanceToNextVehicle number",
    "ls": "a boolean",
    "du": "human_readable boolean",
    "EFSNIOResource.copy": "destination any; force boolean; monitor any",
    "dvRangeQuery": (
        "field string; queryType any; from any; to any; includeFrom boolean; includeTo boolean"
    ),
    "map_routing.fastest_route": "start_location string; end_location string; avoid_tolls boolean",
    "open_project": "path string; read_only boolean",
    "connect_to_server": (
        "nickname string; timeout integer; retry_attempts integer; use_ssl boolean"
    ),
    "statistics.variance": "data array; population boolean",
    "supermarket.find_in_city": "city string; state string; openNow boolean",
    "list_files": "file_type txt|md|py|js|css; include_hidden boolean; recursive boolean",
    "Trains_1_GetTrainTickets": (
        "_from string; to string; date_of_journey string; journey_start_time string; "
        "number_of_adults integer; trip_protection boolean; _class Value|Flexible|Business"
    ),
    "sort_array": "array array; reverse boolean",
    "get_current_weather": "location string; unit celsius|fahrenheit",
    "reschedule": (
        "identifier string; dateortime string; "
        "timezone Asia/Tokyo|America/New_York|Europe/London|UTC"
    ),
    "sendHttpRequest": (
        "method GET|POST|PUT|DELETE|HEAD|PATCH; url string; headers object; data object"
    ),
}
"""Function -> its parameters, divided by "; ": a name, a space, a type or the words of an enum."""
